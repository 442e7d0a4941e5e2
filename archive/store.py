"""Stores by URL: a folder, S3 and what speaks its protocol, or memory. The only module that imports obstore."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import MemoryStore, S3Store
from obstore.store import ObjectStore as AnyStore

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
    from obstore.store import ClientConfig, S3Config

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
_LIST_PAGE = 1000

# What the S3 client takes from the environment, each as AWS_<NAME>, besides the endpoint.
_AWS = (
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
)
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REDIRECTS = ("301", "302", "307", "308")


class ObjectStore:
    """Objects in a bucket (or in memory) through obstore, below ``prefix``.

    ``reads`` may retry by itself, ``writes`` must not: a put whose answer was lost is for ``settle`` to look after.
    """

    def __init__(self, url: str, reads: AnyStore, writes: AnyStore, prefix: str = "") -> None:
        self._url = url
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
            if _status(error) == "416" or "Invalid range: " in str(error):
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
        hint = ""
        if code == "NoSuchBucket":
            hint = "create the bucket, or mend [servers] store"
        elif "http://169.254." in str(error).partition("\n")[0]:
            hint = "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role"
        elif status in ("401", "403"):
            hint = "look at AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do with this bucket"
        elif status in _REDIRECTS or code == "AuthorizationHeaderMalformed":
            hint = "the bucket is in another region: set AWS_REGION"
        elif status == "501":
            hint = "a store must be able to put an object only if there is none (If-None-Match)"
        elif status == "400":
            hint = "look at AWS_REGION and the endpoint"
        if hint:
            missing = "the bucket does not exist" if code == "NoSuchBucket" else f"{path or 'a listing'} was refused"
            raise AccessError(f"the store {self.url}: {missing}", detail=_brief(error), hint=hint) from None


def _status(error: Exception) -> str:
    match = re.search(r"status code: (\d{3})", str(error))
    return match.group(1) if match else ""


def _code(error: Exception) -> str:
    match = re.search(r"<Code>(\w{1,64})</Code>", str(error))
    return match.group(1) if match else ""


def _brief(error: Exception) -> str:
    # Never the whole text: a body may repeat the access key.
    said = " ".join(part for part in (_status(error), _code(error)) if part)
    return f"it said {said}" if said else "no answer to the request"


def open_store(url: str, environ: Mapping[str, str], timeout: timedelta = TIMEOUT) -> Store:
    """Return the store at ``url``: ``file:///path``, ``s3://bucket/prefix``, or ``memory://`` (for tests).

    S3 takes its credentials, region and endpoint from the standard ``AWS_…`` names in ``environ``; plain http is
    spoken where the endpoint says so. ``timeout`` bounds one request. Nothing is asked of the store yet. Raises
    ConfigError for a URL or an endpoint that cannot be used.
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
    if parts.scheme == "s3" and parts.hostname:
        return _open_s3(parts.netloc, parts.path.strip("/"), environ, timeout)
    if url == "memory://":
        memory = MemoryStore()
        return ObjectStore(url, memory, memory)
    raise ConfigError(f"{url!r} is no store", hint="write file:///path or s3://bucket/prefix")


def _open_s3(bucket: str, prefix: str, environ: Mapping[str, str], timeout: timedelta) -> Store:
    if prefix:
        check_path(prefix)
    config: dict[str, Any] = {
        name: environ[key] for name in _AWS if environ.get(key := f"AWS_{name.upper()}", "").strip()
    }
    endpoint = next((environ[name] for name in _ENDPOINTS if environ.get(name)), "")
    if endpoint:
        shown = urlsplit(endpoint)
        if shown.scheme not in ("http", "https") or not shown.hostname or shown.username:
            raise ConfigError(
                f"the S3 endpoint {shown.scheme}://{shown.hostname or ''} cannot be used",
                hint="write https://host, or http://host:port",
            )
        config["endpoint"] = endpoint.rstrip("/")

    options: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": min(timeout, _CONNECT_TIMEOUT),
        "timeout": timeout,
    }
    if certificates := _certificates(environ):
        options["root_certificate"] = certificates

    def client(retries: int) -> AnyStore:
        return S3Store(
            bucket,
            config=cast("S3Config", config),
            client_options=options,
            retry_config={"max_retries": retries, "retry_timeout": timeout},
        )

    try:
        return ObjectStore(f"s3://{bucket}/{prefix}".rstrip("/"), client(_READ_RETRIES), client(0), prefix)
    except (BaseError, ValueError) as error:
        raise ConfigError(
            f"the store s3://{bucket} cannot be used as configured", detail=type(error).__name__
        ) from None


def _certificates(environ: Mapping[str, str]) -> bytes:
    bundle = environ.get("AWS_CA_BUNDLE")
    if not bundle:
        return b""
    try:
        return Path(bundle).read_bytes()
    except OSError as error:
        raise ConfigError(f"AWS_CA_BUNDLE: {bundle} cannot be read", detail=error.strerror or "") from None
