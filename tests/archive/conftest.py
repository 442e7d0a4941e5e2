"""Stores for the tests of the archive."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from archive.store import FolderStore, Store, open_store
from tests.support.faulty_store import FaultyStore
from tests.support.s3 import S3Server, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """The S3 server of this pytest process."""
    with s3_server() as server:
        yield server


@pytest.fixture(params=["folder", "memory", "s3", "faulty"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store of each kind."""
    if request.param == "memory":
        return open_store("memory://", {})
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3")
        return open_store(f"s3://{server.bucket()}/some/prefix", server.environ)
    folder = FolderStore(tmp_path / "store")
    return folder if request.param == "folder" else FaultyStore(folder)
