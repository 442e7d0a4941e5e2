"""Stores for the tests of the archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from archive.store import FolderStore, Store, open_store
from tests.support.clouds import AZURE_SERVER, CloudServer, azure_server, on_path
from tests.support.faulty_store import FaultyStore
from tests.support.gcs import gcs_server
from tests.support.s3 import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The S3 server of this pytest process."""
    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def gcs(s3: S3Server) -> Iterator[CloudServer]:
    """A server of this pytest process that speaks Google's protocol."""
    with gcs_server(s3) as server:
        yield server


@pytest.fixture(scope="session")
def azure() -> Iterator[CloudServer]:
    """A server of this pytest process that speaks Azure's protocol."""
    if why := on_path(AZURE_SERVER):
        pytest.skip(why)
    with azure_server() as server:
        yield server


@pytest.fixture(params=["folder", "memory", "s3", "gcs", "faulty", pytest.param("azure", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param in ("gcs", "azure"):
        cloud: CloudServer = request.getfixturevalue(request.param)
        return open_store(f"{cloud.scheme}://{cloud.bucket()}/some/prefix", cloud.environ)
    if request.param == "memory":
        return open_store("memory://", {})
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return open_store(f"s3://{server.bucket()}/some/prefix", server.environ)
    folder = FolderStore(tmp_path / "store")
    return folder if request.param == "folder" else FaultyStore(folder)
