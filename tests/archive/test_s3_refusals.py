"""What an object store answers badly, or not at all, becomes an error with a remedy and without secrets."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from archive.store import (
    ObjectExistsError,
    Store,
    open_store,
)
from leaderboard.errors import AccessError, OutcomeUnknownError, UnavailableError
from tests.support.s3 import S3Server


def names(store: Store, prefix: str = "") -> list[str]:
    return [stored.path for stored in store.list(prefix)]


class Deaf:
    """A server that answers every connection with the same bytes, or never, or is not there."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def environ(self) -> dict[str, str]:
        host, port = self._socket.getsockname()
        return {
            "AWS_ENDPOINT": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "key-id-shown-nowhere",
            "AWS_SECRET_ACCESS_KEY": "secret-shown-nowhere",
        }

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        for connection in self.connections:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections.append(connection)
            if self._answer is not None:
                connection.recv(65_536)
                connection.sendall(self._answer)
                connection.shutdown(socket.SHUT_RDWR)


def http(status: int, body: str = "") -> bytes:
    head = f"HTTP/1.1 {status} x\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


@pytest.fixture
def deaf(request: pytest.FixtureRequest) -> Iterator[Deaf]:
    server = Deaf(request.param)
    yield server
    server.close()


class TestS3Refusals:
    """What an object store answers badly becomes an error with a remedy; nothing secret is in it."""

    def test_a_bucket_that_does_not_exist(self, s3: S3Server) -> None:
        """Every use names the bucket and the remedy; it is never taken for a missing object."""
        store = open_store("s3://no-such-bucket", s3.environ)
        for use in (
            lambda: store.put_new("a", b""),
            lambda: store.get("a"),
            lambda: names(store),
            lambda: names(store, "a"),
            lambda: store.delete("a"),
        ):
            with pytest.raises(AccessError, match=r"no-such-bucket.*does not exist.*create the bucket"):
                use()

    @pytest.mark.parametrize(
        ("deaf", "remedy"),
        [
            (
                http(
                    403,
                    "<Error><Code>InvalidAccessKeyId</Code><AWSAccessKeyId>key-id-shown-nowhere</AWSAccessKeyId></Error>",
                ),
                "AWS_ACCESS_KEY_ID",
            ),
            (http(401), "AWS_ACCESS_KEY_ID"),
            (http(400, "<Error><Code>AuthorizationHeaderMalformed</Code></Error>"), "AWS_REGION"),
            (http(400, "<Error><Code>ExpiredToken</Code></Error>"), "expired.*AWS_ACCESS_KEY_ID"),
            (http(400, "<Error><Code>InvalidToken</Code></Error>"), "AWS_ACCESS_KEY_ID"),
            (http(400, "<Error><Code>InvalidRequest</Code></Error>"), "AWS_REGION and the endpoint"),
            (http(400), "AWS_REGION and the endpoint"),
            (http(501), "only if there is none"),
        ],
        indirect=["deaf"],
    )
    def test_refused_for_good(self, deaf: Deaf, remedy: str) -> None:
        """Wrong key, missing right, wrong region, no conditional put: refused, and the remedy is named."""
        store = open_store("s3://bucket", deaf.environ)
        for use in (lambda: store.put_new("a", b""), lambda: store.get("a"), lambda: names(store)):
            with pytest.raises(AccessError, match=remedy) as caught:
                use()
            assert "shown-nowhere" not in str(caught.value)
            assert caught.value.__cause__ is None

    @pytest.mark.parametrize(
        "deaf",
        [
            None,
            b"",
            http(500),
            http(503),
            http(503, "<Error><Code>SlowDown</Code></Error>"),
            http(400, "<Error><Code>RequestTimeout</Code></Error>"),
        ],
        indirect=True,
    )
    def test_no_answer(self, deaf: Deaf) -> None:
        """C57: silence, a cut connection, a server that fails or is busy: a put, sent once, is unknown."""
        store = open_store("s3://bucket", deaf.environ, timeout=timedelta(seconds=0.2))
        with pytest.raises(OutcomeUnknownError, match="a was sent"):
            store.put_new("a", b"")
        assert len(deaf.connections) == 1
        with pytest.raises(UnavailableError, match="did not answer for a"):
            store.get("a")
        with pytest.raises(UnavailableError, match="did not answer"):
            names(store)

    @pytest.mark.parametrize("deaf", [http(409), http(412)], indirect=True)
    def test_conflicts_are_taken_for_an_existing_object(self, deaf: Deaf) -> None:
        """409 (somebody else is at it) and 412 (it exists): look again, do not overwrite."""
        with pytest.raises(ObjectExistsError):
            open_store("s3://bucket", deaf.environ).put_new("a", b"")

    @pytest.mark.parametrize(
        "deaf",
        [
            b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\nETag: "x"\r\n'
            b"Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT\r\n\r\nabc"
        ],
        indirect=True,
    )
    def test_a_truncated_answer_is_no_object(self, deaf: Deaf) -> None:
        """Fewer bytes than announced are an error, never a shorter object."""
        with pytest.raises(UnavailableError):
            open_store("s3://bucket", deaf.environ).get("a")

    def test_nobody_listens(self) -> None:
        """A refused connection has sent nothing: the put is known not to be done."""
        with socket.create_server(("127.0.0.1", 0)) as closed:
            port = closed.getsockname()[1]
        environ = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "a",
            "AWS_SECRET_ACCESS_KEY": "b",
        }
        store = open_store("s3://bucket/prefix", environ, timeout=timedelta(seconds=1))
        for use in (lambda: store.put_new("a", b""), lambda: store.get("a"), lambda: names(store)):
            with pytest.raises(UnavailableError, match="s3://bucket/prefix"):
                use()
