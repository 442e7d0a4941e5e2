"""One behaviour suite over every store, and how stores are opened."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3
import pytest

from archive.store import (
    FolderStore,
    ObjectDiffersError,
    ObjectExistsError,
    ObjectMissingError,
    Store,
    open_store,
    settle,
)
from leaderboard.errors import ConfigError, InputError, OutcomeUnknownError, UnavailableError
from tests.support.faulty_store import FaultyStore, Killed
from tests.support.s3 import S3Server

ROOT = Path(__file__).parents[2]


def names(store: Store, prefix: str = "") -> list[str]:
    return [stored.path for stored in store.list(prefix)]


class TestEveryStore:
    """Whatever a store is made of, it behaves the same."""

    def test_gives_back_what_was_put(self, store: Store) -> None:
        """Bytes come back as they were, also none and all 256."""
        for path, data in {"a/b=1/c.json": bytes(range(256)), "empty": b""}.items():
            store.put_new(path, data)
            assert store.get(path) == data

    def test_c42_refuses_a_path_that_is_taken(self, store: Store) -> None:
        """C42: a second put of the same path is refused, also with the same bytes, and changes nothing."""
        store.put_new("seals/x/y.json", b"first")
        for data in (b"first", b"second"):
            with pytest.raises(ObjectExistsError, match=r"y\.json"):
                store.put_new("seals/x/y.json", data)
        assert store.get("seals/x/y.json") == b"first"

    def test_c42_of_two_writers_exactly_one_wins(self, store: Store) -> None:
        """C42: writers at the same time: one writes, the others are told, the winner's bytes are there."""
        barrier = threading.Barrier(4)

        def write(number: int) -> bool:
            barrier.wait()
            try:
                store.put_new("seal", b"%d" % number * 10_000)
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(write, range(4)))
        assert won.count(True) == 1
        assert store.get("seal") == b"%d" % won.index(True) * 10_000

    def test_a_missing_object_is_told(self, store: Store) -> None:
        """A path that holds nothing, or objects below it, is missing; the message names it."""
        store.put_new("folder/file", b"x")
        for path in ("nothing", "folder", "folder/file/below"):
            with pytest.raises(ObjectMissingError, match=path):
                store.get(path)

    def test_delete_is_done_when_it_is_gone(self, store: Store) -> None:
        """Deleting what is not there is fine; afterwards the path is free again."""
        store.delete("never/was")
        store.put_new("a", b"1")
        store.delete("a")
        store.delete("a")
        store.delete("a/below")
        store.put_new("a", b"2")
        assert store.get("a") == b"2"

    def test_lists_a_folder_sorted(self, store: Store) -> None:
        """A listing holds what is below the folder, sorted, with sizes and times, and no neighbour of a like name."""
        before = datetime.now(UTC) - timedelta(seconds=2)
        for path in ("p/b", "p/a/2", "p/a/1", "pp/x", "q"):
            store.put_new(path, path.encode())
        found = list(store.list("p"))
        assert [stored.path for stored in found] == ["p/a/1", "p/a/2", "p/b"]
        assert names(store, "p/") == ["p/a/1", "p/a/2", "p/b"]
        assert [stored.size for stored in found] == [5, 5, 3]
        assert all(before <= stored.modified <= datetime.now(UTC) + timedelta(seconds=2) for stored in found)
        assert names(store) == ["p/a/1", "p/a/2", "p/b", "pp/x", "q"]
        assert names(store, "nothing/here") == []

    def test_c47_lists_more_than_a_page(self, store: Store) -> None:
        """C47: 1,001 objects are listed, not 1,000."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: store.put_new(f"many/{number:04d}", b""), range(1001)))
        assert names(store, "many") == [f"many/{number:04d}" for number in range(1001)]

    def test_c44_large_objects_keep_their_sha256(self, store: Store) -> None:
        """C44, C45: 9 MB are one object whose own SHA-256 agrees; no ETag and no multipart upload is involved."""
        data = os.urandom(9 * 2**20)
        store.put_new("large", data)
        assert hashlib.sha256(store.get("large")).digest() == hashlib.sha256(data).digest()

    @pytest.mark.parametrize(
        "path", ["", "/etc/passwd", "a//b", "../x", "a/../x", ".", ".incoming/x", "a b", "a/", "ü", "a\\b", "x\n"]
    )
    def test_refuses_paths_that_are_not_plain(self, store: Store, path: str) -> None:
        """No path leaves the store, or means something else in another store."""
        with pytest.raises(InputError):
            store.put_new(path, b"")
        with pytest.raises(InputError):
            store.get(path)
        assert names(store) == []

    def test_settle_writes_once(self, store: Store) -> None:
        """Settling says who wrote, accepts the same bytes, and refuses others with both hashes."""
        assert settle(store, "seal", b"content")
        assert not settle(store, "seal", b"content")
        with pytest.raises(ObjectDiffersError) as caught:
            settle(store, "seal", b"other")
        for part in ("seal", hashlib.sha256(b"content").hexdigest(), hashlib.sha256(b"other").hexdigest()):
            assert part in str(caught.value)
        assert store.get("seal") == b"content"


class TestSettleThroughFaults:
    """I8: a put whose answer was lost is looked after, whichever way it went."""

    @pytest.mark.parametrize("script", ["d", "u", "u.d", "u.u", "u.u.d"])
    def test_lost_answers(self, tmp_path: Path, script: str) -> None:
        """Done or not done, the object is there in the end; it is put again only when it was seen to be missing."""
        faulty = FaultyStore(FolderStore(tmp_path), script)
        settle(faulty, "part", b"data", lambda _: None)
        assert faulty.inner.get("part") == b"data"

    @pytest.mark.parametrize(
        ("script", "pauses"), [("", 0), ("d", 0), ("u", 1), ("c", 1), ("u.d", 1), ("u.u", 2), ("u.u.d", 2)]
    )
    def test_a_store_that_is_busy_is_given_time(self, tmp_path: Path, script: str, pauses: int) -> None:
        """Before each further put comes a pause, longer than the one before; none where the object is seen there."""
        waited: list[float] = []
        settle(FaultyStore(FolderStore(tmp_path), script), "part", b"data", waited.append)
        assert len(waited) == pauses
        assert all(0 < before < after for before, after in pairwise(waited))

    def test_gives_up_as_unknown(self, tmp_path: Path) -> None:
        """Answers that stay lost end as an unknown outcome, not as "not done"."""
        with pytest.raises(OutcomeUnknownError):
            settle(FaultyStore(FolderStore(tmp_path), "u.u.u."), "part", b"data", lambda _: None)
        with pytest.raises(OutcomeUnknownError):
            settle(FaultyStore(FolderStore(tmp_path), "dn"), "part", b"data")

    def test_a_lost_answer_and_another_writer(self, tmp_path: Path) -> None:
        """If another writer got there while the answer was lost, the bytes decide."""
        folder = FolderStore(tmp_path)
        folder.put_new("part", b"theirs")
        with pytest.raises(ObjectDiffersError):
            settle(FaultyStore(folder, "u"), "part", b"ours")

    def test_a_failure_before_the_put_is_passed_on(self, tmp_path: Path) -> None:
        """Not done is told as such, and nothing is there."""
        with pytest.raises(UnavailableError):
            settle(FaultyStore(FolderStore(tmp_path), "n"), "part", b"data")
        assert names(FolderStore(tmp_path)) == []

    @pytest.mark.parametrize("script", ["k", "K"])
    def test_a_kill_leaves_all_or_nothing(self, tmp_path: Path, script: str) -> None:
        """Killed before or after, running again ends the same."""
        with pytest.raises(Killed):
            settle(FaultyStore(FolderStore(tmp_path), script), "part", b"data")
        settle(FolderStore(tmp_path), "part", b"data")
        assert FolderStore(tmp_path).get("part") == b"data"


def test_c45_nothing_is_ever_uploaded_in_parts(s3: S3Server) -> None:
    """C45: an object larger than a client's usual limit is put at once, so that no failure leaves half an upload."""
    bucket = s3.bucket()
    with closing(bucket_client(s3)) as client:
        open_store(f"s3://{bucket}", s3.environ).put_new("large", bytes(33 * 2**20))
        assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)
        assert "-" not in client.head_object(Bucket=bucket, Key="large")["ETag"]


def bucket_client(s3: S3Server) -> Any:
    """Return the cloud's own client of the server."""
    given = s3.environ
    return boto3.client(
        "s3",
        endpoint_url=s3.endpoint,
        aws_access_key_id=given["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=given["AWS_SECRET_ACCESS_KEY"],
        region_name=given["AWS_REGION"],
    )


def test_c40_a_process_that_used_the_store_ends_well(s3: S3Server) -> None:
    """C40: pyarrow's S3 file system is not used; a process ends by itself with 0, and its object is there."""
    url = f"s3://{s3.bucket()}/x"
    code = (
        "import json, sys; from archive.store import open_store;"
        "open_store(sys.argv[1], json.loads(sys.argv[2])).put_new('a', b'1')"
    )
    subprocess.run([sys.executable, "-c", code, url, json.dumps(dict(s3.environ))], check=True, timeout=60, cwd=ROOT)
    assert open_store(url, s3.environ).get("a") == b"1"


class TestOpen:
    """A store is told by its URL."""

    def test_prefixes_are_separate(self, s3: S3Server) -> None:
        """Two prefixes of a bucket are two stores; a path in one is not seen in the other."""
        bucket = s3.bucket()
        one, other, whole = (open_store(f"s3://{bucket}{end}", s3.environ) for end in ("/one", "/o", "/"))
        one.put_new("a", b"1")
        assert (names(one), names(other), names(whole)) == (["a"], [], ["one/a"])
        assert (one.url, whole.url) == (f"s3://{bucket}/one", f"s3://{bucket}")

    def test_a_folder_by_url(self, tmp_path: Path) -> None:
        """file:// with blanks in the path, and back."""
        folder = tmp_path / "with blank"
        store = open_store(folder.as_uri(), {})
        store.put_new("a", b"1")
        assert (folder / "a").read_bytes() == b"1"
        assert store.url == folder.as_uri()

    @pytest.mark.parametrize(
        "url",
        [
            "file://relative/path",
            "file:///",
            "/no/scheme",
            "ftp://host/x",
            "s3://",
            "s3://key:secret@bucket/x",
            "s3://bucket/x?token=secret",
            "",
        ],
    )
    def test_urls_that_are_none(self, url: str) -> None:
        """Each is refused with what to write instead, and no secret in the message."""
        with pytest.raises(ConfigError) as caught:
            open_store(url, {})
        assert caught.value.hint
        assert "secret" not in str(caught.value).replace("AWS_SECRET_ACCESS_KEY", "")

    @pytest.mark.parametrize("endpoint", ["host:9000", "ftp://host", "http://user:secret@host"])
    def test_endpoints_that_are_none(self, endpoint: str) -> None:
        """An endpoint is http or https, and carries no password."""
        with pytest.raises(ConfigError) as caught:
            open_store("s3://bucket", {"AWS_ENDPOINT_URL": endpoint})
        assert "secret" not in str(caught.value)

    def test_certificates_that_cannot_be_read(self, tmp_path: Path) -> None:
        """AWS_CA_BUNDLE names a file that is not there: told before anything is asked."""
        with pytest.raises(ConfigError, match="AWS_CA_BUNDLE"):
            open_store("s3://bucket", {"AWS_CA_BUNDLE": str(tmp_path / "none.pem")})
