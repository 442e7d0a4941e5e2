"""What each cloud's object store takes from the environment, and how its refusals are told. Opens nothing.

Credentials come from the variables that the cloud's own tools use, never from a URL or a configuration file; each may
be given as a file instead, its path in ``<NAME>_FILE``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from leaderboard.errors import ConfigError
from leaderboard.files import check_file

_REDIRECTS = ("301", "302", "307", "308")
#: Where clients look for a role when they were given no credentials.
_METADATA = ("http://169.254.", "metadata.google.internal", "metadata/identity")
_PASSING = ("RequestTimeout",)  # though its status is one of those that refuse
_STALE_TOKEN = ("ExpiredToken", "InvalidToken", "ExpiredTokenException")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")


@dataclass(frozen=True, slots=True)
class Cloud:
    """One kind of object store.

    ``variables`` maps names of the environment to the client's options, ``endpoints`` names those that move it to
    another server, into the option ``endpoint``; ``certificates`` names the variable with the file of trusted ones.
    """

    service: str
    bucket: str  #: what a bucket is called there
    variables: Mapping[str, str]
    endpoints: tuple[str, ...]
    endpoint: str
    certificates: tuple[str, ...]
    credentials: str  #: which variables to set, as a person is told
    place: str  #: what decides where the bucket is


def _same(prefix: str, *names: str) -> dict[str, str]:
    return {f"{prefix}{name.upper()}": name for name in names}


S3 = Cloud(
    service="S3",
    bucket="bucket",
    variables=_same(
        "AWS_",
        "access_key_id",
        "secret_access_key",
        "session_token",
        "region",
        "default_region",
        "role_arn",
        "role_session_name",
        "web_identity_token_file",
        "container_credentials_relative_uri",
        "container_credentials_full_uri",
        "container_authorization_token_file",
        "metadata_endpoint",
        "imdsv1_fallback",
        "skip_signature",
        "virtual_hosted_style_request",
        "request_payer",
        "server_side_encryption",
        "sse_kms_key_id",
    ),
    endpoints=("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    endpoint="endpoint",
    certificates=("AWS_CA_BUNDLE", "SSL_CERT_FILE"),
    credentials="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role",
    place="AWS_REGION",
)
GCS = Cloud(
    service="Google Cloud Storage",
    bucket="bucket",
    variables={
        "GOOGLE_SERVICE_ACCOUNT": "service_account",
        "GOOGLE_SERVICE_ACCOUNT_PATH": "service_account",
        "GOOGLE_SERVICE_ACCOUNT_KEY": "service_account_key",
        "GOOGLE_APPLICATION_CREDENTIALS": "application_credentials",
        "GOOGLE_BEARER_TOKEN": "bearer_token",
        "GOOGLE_SKIP_SIGNATURE": "skip_signature",
    },
    endpoints=("GOOGLE_BASE_URL",),
    endpoint="base_url",
    certificates=("SSL_CERT_FILE",),
    credentials="GOOGLE_APPLICATION_CREDENTIALS, or run with a service account",
    place="GOOGLE_BASE_URL",
)
AZURE = Cloud(
    service="Azure",
    bucket="container",
    variables={
        **_same("AZURE_STORAGE_", "account_name", "account_key", "token"),
        "AZURE_STORAGE_ACCESS_KEY": "account_key",
        "AZURE_STORAGE_SAS_TOKEN": "sas_key",
        "AZURE_STORAGE_SAS_KEY": "sas_key",
        **_same("AZURE_", "client_id", "client_secret", "tenant_id", "authority_host", "federated_token_file"),
        **_same("AZURE_", "msi_endpoint", "object_id", "msi_resource_id", "credential_type", "use_azure_cli"),
        "AZURE_SKIP_SIGNATURE": "skip_signature",
    },
    endpoints=("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    endpoint="endpoint",
    certificates=("SSL_CERT_FILE",),
    credentials="AZURE_STORAGE_ACCOUNT_NAME, with AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_TOKEN or an identity",
    place="AZURE_STORAGE_ACCOUNT_NAME",
)
CLOUDS = {"s3": S3, "gs": GCS, "az": AZURE}


def options(cloud: Cloud, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of the cloud's client that ``environ`` gives, the endpoint among them.

    Raises ConfigError for an endpoint that is none, and for a file of a secret that cannot be read.
    """
    found = {option: value for name, option in cloud.variables.items() if (value := _value(environ, name))}
    if endpoint := endpoint_of(cloud, environ):
        shown = urlsplit(endpoint)
        if shown.scheme not in ("http", "https") or not shown.hostname or shown.username:
            raise ConfigError(
                f"the {cloud.service} endpoint {shown.scheme}://{shown.hostname or ''} cannot be used",
                hint="write https://host, or http://host:port",
            )
        found[cloud.endpoint] = endpoint
    if cloud is AZURE and "account_name" not in found:
        raise ConfigError(
            "no account of Azure's storage is named", hint=f"set {cloud.credentials}; az:// names the container"
        )
    return found


def endpoint_of(cloud: Cloud, environ: Mapping[str, str]) -> str:
    """Return the URL to which the cloud's own is moved, without a last slash; nothing if it is not."""
    return next((environ[name].rstrip("/") for name in cloud.endpoints if environ.get(name)), "")


def certificates(cloud: Cloud, environ: Mapping[str, str]) -> bytes:
    """Return the certificates to trust beside the usual ones, PEM; raise ConfigError if the file cannot be read."""
    for name in cloud.certificates:
        if path := environ.get(name):
            return _read(name, path)
    return b""


def remedy(cloud: Cloud, text: str, status: str, code: str) -> str:
    """Return what an operator should do about an answer that refuses for good; nothing if it is none, or passes.

    ``text`` is the client's whole error, of which nothing may be shown: a body may repeat a key.
    """
    if code in _PASSING:
        return ""
    found = {
        f"create the {cloud.bucket}, or mend [servers] store": code in _NO_BUCKET,
        f"no credentials were found: set {cloud.credentials}": _asked_for_a_role(text),
        f"the token has expired, or is none: renew {cloud.credentials}": code in _STALE_TOKEN,
        f"look at {cloud.credentials}, and at what they may do with this {cloud.bucket}": (
            status in ("401", "403") or code == "AccessDenied"
        ),
        f"the {cloud.bucket} is in another region: set {cloud.place}": (
            status in _REDIRECTS or code == "AuthorizationHeaderMalformed"
        ),
        "a store must be able to put an object only if there is none (If-None-Match)": status == "501",
        f"look at {cloud.place} and the endpoint": status == "400",
    }
    return next((told for told, applies in found.items() if applies), "")


def _asked_for_a_role(text: str) -> bool:
    return any(place in text.partition("\n")[0] for place in _METADATA)


def is_missing_bucket(code: str) -> bool:
    """Return whether the error ``code`` of a store says that there is no such bucket."""
    return code in _NO_BUCKET


def _value(environ: Mapping[str, str], name: str) -> str:
    if value := environ.get(name, "").strip():
        return value
    path = environ.get(f"{name}_FILE", "").strip()
    return _read(f"{name}_FILE", path).decode(errors="replace").strip() if path else ""


def _read(name: str, path: str) -> bytes:
    try:
        return check_file(Path(path)).read_bytes()
    except OSError as error:
        hint = f"look at {name}, and at who may read that file"
        raise ConfigError(f"{name}: {path} cannot be read", detail=error.strerror or "", hint=hint) from None
