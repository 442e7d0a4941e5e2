"""A server that speaks the protocol of Azure's storage: Azurite, a program of Node, where somebody has put it on PATH.

Where it is missing its tests are skipped; docs/operations.md says so.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

from jobs.embedded.server import wait_until
from tests.support.topologies import HOST, free_port

AZURE_SERVER = "azurite-blob"
# What Azurite documents for everybody to use.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class CloudServer:
    """Where the server answers, the scheme of its stores, and the environment that ``open_store`` needs."""

    scheme: str
    endpoint: str
    environ: Mapping[str, str]
    bucket: Callable[[], str]  #: creates an empty bucket and returns its name


def on_path(program: str) -> str | None:
    """Return why a test that needs the program cannot run; nothing if it can."""
    return None if shutil.which(program) else f"{program} is not on PATH"


@contextmanager
def azure_server() -> Iterator[CloudServer]:
    """Run Azurite, which keeps everything in memory, while the block lasts."""
    port = free_port()
    words = ["--blobHost", HOST, "--blobPort", str(port), "--inMemoryPersistence"]
    endpoint = f"http://{HOST}:{port}/{_ACCOUNT}"
    with _running([AZURE_SERVER, *words, "--silent", "--skipApiVersionCheck", "--disableTelemetry"], endpoint):
        environ = {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_ENDPOINT": endpoint,
        }
        yield CloudServer("az", endpoint, environ, lambda: _container(endpoint))


def _container(endpoint: str) -> str:
    """Create an empty container and return its name. Rule: Azure Storage services, "Authorize with Shared Key"."""
    name, kind = f"container-{uuid4().hex}", "application/octet-stream"
    date = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": date, "x-ms-version": "2021-08-06"}
    told = [f"{header}:{headers[header]}" for header in sorted(headers)]
    text = "\n".join(["PUT", *[""] * 4, kind, *[""] * 6, *told, f"/{_ACCOUNT}/{_ACCOUNT}/{name}", "restype:container"])
    signed = base64.b64encode(hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)).decode()
    headers |= {"Content-Type": kind, "Authorization": f"SharedKey {_ACCOUNT}:{signed}"}
    _send(f"{endpoint}/{name}?restype=container", "PUT", b"", headers)
    return name


@contextmanager
def _running(words: list[str], url: str) -> Iterator[None]:
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: _answers(url), 60), f"{words[0]} did not start"
        yield
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        _send(url, "GET", None, {})
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _send(url: str, method: str, body: bytes | None, headers: Mapping[str, str]) -> None:
    request = urllib.request.Request(url, data=body, method=method, headers=dict(headers))
    with urllib.request.urlopen(request, timeout=30):
        pass
