"""TLS where a server with it is at hand: Debian's redis-server is built with it, none of the wheels is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.servers import ServerFactory
from tests.support.topologies import HOST, PROGRAMS, program_folder, speaks_tls

#: Why a test is skipped; docs/operations.md says that TLS is untested without.
NO_TLS = "no server built with TLS is on this machine; Debian's redis-server is"


def tls_folder() -> Path | None:
    """Return the folder of a server that speaks TLS, None if there is none."""
    folders = (program_folder(name) for name in PROGRAMS)
    return next((folder for folder in folders if folder and speaks_tls(folder)), None)


def tls_options(port: int, cert: Path, key: Path) -> list[str]:
    """Return the options of a server, a Sentinel too, that listens with TLS on ``port`` and trusts any client."""
    files = ["--tls-cert-file", str(cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(cert)]
    return ["--tls-port", str(port), *files, "--tls-auth-clients", "no", "--bind", HOST]


def certificate(factory: ServerFactory, folder: Path) -> tuple[Path, Path]:
    """Return a new self-signed certificate for this machine, and its key, readable by the servers' user."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_path, key_path = folder / "cert.pem", folder / "key.pem"
    cert_path.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    for path in (cert_path, key_path):
        factory.account.give(path)
    return cert_path, key_path
