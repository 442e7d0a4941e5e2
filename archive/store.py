"""Stores by URL: a folder, a bucket of a cloud, or memory. The only module that imports obstore."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import AzureStore, GCSStore, MemoryStore, S3Store
from obstore.store import ObjectStore as AnyStore

from archive import buckets
from archive.folder import FolderStore
from archive.objects import (
    ObjectDiffersError,
    ObjectExistsError,
    ObjectMissingError,
    ObjectShortError,
    Store,
    StoredObject,
    check_path,
    check_range,
    settle,
)
from leaderboard.errors import AccessError, ConfigError, FinaleError, OutcomeUnknownError, UnavailableError

if TYPE_CHECKING:
    from obstore.store import ClientConfig

__all__ = [
    "FolderStore",
    "ObjectDiffersError",
    "ObjectExistsError",
    "ObjectMissingError",
    "ObjectShortError",
    "ObjectStore",
    "Store",
    "StoredObject",
    "open_store",
    "settle",
]

TIMEOUT = timedelta(minutes=2)  #: of one request, so that a part of some 100 MB passes a slow line
_CONNECT_TIMEOUT = timedelta(seconds=5)
_READ_RETRIES = 3
_PAST_THE_END = re.compile(r".*(?:Invalid range: |Wanted range starting at )")
_CLIENTS: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
_LIST_PAGE = 1000


class ObjectStore:
    """Objects in a bucket (or in memory) through obstore, below ``prefix``.

    ``reads`` may retry by itself, ``writes`` must not: a put whose answer was lost is for ``settle`` to look after.
    """

    def __init__(
        self, url: str, reads: AnyStore, writes: AnyStore, prefix: str = "", cloud: buckets.Cloud = buckets.S3
    ) -> None:
        self._url = url
        self._cloud = cloud
        self._reads = reads
        self._writes = writes
        self._prefix = f"{prefix}/" if prefix else ""

    @property
    def url(self) -> str:
        return self._url

    def put_new(self, path: str, data: bytes) -> None:
        try:
            obstore.put(self._writes, self._key(path), data, mode="create", use_multipart=False)
        except AlreadyExistsError:
            raise ObjectExistsError(f"{self.url}: {path} exists already") from None
        except (BaseError, OSError) as error:
            self._refused(error, path)
            if "kind: Connect," in str(error):
                raise self._unanswered(error, path) from None
            raise OutcomeUnknownError(
                f"{self.url}: {path} was sent, the answer was lost", detail=_brief(error), hint="look again"
            ) from None

    def get(self, path: str) -> bytes:
        try:
            return obstore.get(self._reads, self._key(path)).bytes().to_bytes()
        except (BaseError, OSError) as error:
            self._raise(error, path)

    def get_range(self, path: str, start: int, length: int) -> bytes:
        try:
            found = obstore.get_range(self._reads, self._key(path), start=start, length=length)
        except (BaseError, OSError) as error:
            if _status(error) == "416" or _PAST_THE_END.match(_first_line(error)):
                return check_range(self, path, start, length, b"")
            self._raise(error, path)
        return check_range(self, path, start, length, found.to_bytes())

    def list(self, prefix: str) -> Iterator[StoredObject]:
        key = self._key(prefix.rstrip("/")) if prefix else self._prefix
        try:
            pages = list(obstore.list(self._reads, key or None, chunk_size=_LIST_PAGE))
        except (BaseError, OSError) as error:
            self._raise(error, prefix)
        yield from sorted(
            StoredObject(found["path"].removeprefix(self._prefix), found["size"], found["last_modified"])
            for page in pages
            for found in page
        )

    def delete(self, path: str) -> None:
        try:
            obstore.delete(self._reads, self._key(path))
        except (BaseError, OSError) as error:
            try:
                self._raise(error, path)
            except ObjectMissingError:
                return

    def _key(self, path: str) -> str:
        return self._prefix + check_path(path)

    def _raise(self, error: Exception, path: str) -> NoReturn:
        self._refused(error, path)
        if isinstance(error, NotFoundError | FileNotFoundError):
            raise ObjectMissingError(f"{self.url}: {path} does not exist") from None
        raise self._unanswered(error, path) from None

    def _unanswered(self, error: Exception, path: str) -> FinaleError:
        return UnavailableError(
            f"the store {self.url} did not answer for {path}", detail=_brief(error), hint="look at network and endpoint"
        )

    def _refused(self, error: Exception, path: str) -> None:
        """Raise AccessError if the store answered and refused for good, whatever exception the client made of it."""
        status, code = _status(error), _code(error)
        if not (hint := buckets.remedy(self._cloud, str(error), status, code)):
            return
        absent = buckets.is_missing_bucket(code)
        missing = f"the {self._cloud.bucket} does not exist" if absent else f"{path or 'a listing'} was refused"
        raise AccessError(f"the store {self.url}: {missing}", detail=_brief(error), hint=hint) from None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _status(error: Exception) -> str:
    match = re.search(r"status code: (\d{3})", str(error))
    return match.group(1) if match else ""


def _code(error: Exception) -> str:
    # The second is what is told of one object of several that were to be deleted.
    match = re.search(r"<Code>(\w{1,64})</Code>|\(code: (\w{1,64})\)", str(error))
    return match.group(1) or match.group(2) if match else ""


def _brief(error: Exception) -> str:
    # Never the whole text: a body may repeat the access key.
    said = " ".join(part for part in (_status(error), _code(error)) if part)
    return f"it said {said}" if said else "no answer to the request"


def open_store(url: str, environ: Mapping[str, str], timeout: timedelta = TIMEOUT) -> Store:
    """Return the store at ``url``: ``file:///path``, ``s3://bucket/prefix``, ``gs://bucket/prefix``,
    ``az://container/prefix``, or ``memory://`` (for tests).

    Credentials, region, account and endpoint of a cloud come from the variables in ``environ`` that its own tools use
    (``archive.buckets``); plain http is spoken where the endpoint says so. ``timeout`` bounds one request. Nothing is
    asked of the store yet. Raises ConfigError for a URL or variables that cannot be used.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ConfigError(
            f"the store {parts.scheme}://{parts.hostname}{parts.path} may carry no credentials or options",
            hint="put credentials into the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        if parts.netloc not in ("", "localhost") or not path.is_absolute() or path == Path("/"):
            raise ConfigError(f"{url!r} names no folder", hint="write file:// and an absolute path: file:///srv/finale")
        return FolderStore(path)
    if parts.scheme in buckets.CLOUDS and parts.hostname:
        return _open_cloud(parts.scheme, parts.netloc, parts.path.strip("/"), environ, timeout)
    if url == "memory://":
        memory = MemoryStore()
        return ObjectStore(url, memory, memory)
    raise ConfigError(f"{url!r} is no store", hint="write file:///path, s3://bucket/prefix, gs://… or az://…")


def _open_cloud(scheme: str, bucket: str, prefix: str, environ: Mapping[str, str], timeout: timedelta) -> Store:
    if prefix:
        check_path(prefix)
    cloud, kind = buckets.CLOUDS[scheme], _CLIENTS[scheme]
    config = buckets.options(cloud, environ)
    client_options: ClientConfig = {
        "allow_http": buckets.endpoint_of(cloud, environ).startswith("http://"),
        "connect_timeout": min(timeout, _CONNECT_TIMEOUT),
        "timeout": timeout,
    }
    if certificates := buckets.certificates(cloud, environ):
        client_options["root_certificate"] = certificates

    def client(retries: int) -> AnyStore:
        made: AnyStore = kind(
            bucket,
            config=config,
            client_options=client_options,
            retry_config={"max_retries": retries, "retry_timeout": timeout},
        )
        return made

    try:
        return ObjectStore(f"{scheme}://{bucket}/{prefix}".rstrip("/"), client(_READ_RETRIES), client(0), prefix, cloud)
    except (BaseError, ValueError, OSError) as error:
        raise ConfigError(
            f"the store {scheme}://{bucket} cannot be used as configured",
            detail=type(error).__name__,
            hint=f"look at {cloud.credentials}",
        ) from None
