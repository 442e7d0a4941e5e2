"""Google's and Azure's stores: what the environment gives them, what they refuse, and that no secret is ever told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from archive import buckets
from archive.canary import check_conditional_put
from archive.store import ObjectExistsError, Store, open_store
from leaderboard.errors import AccessError, ConfigError, OutcomeUnknownError, UnavailableError
from tests.archive.test_s3_refusals import Deaf, http, names

SECRET = "c2hvd24tbm93aGVyZQ=="
URLS = {"gs": "gs://bucket/prefix", "az": "az://container/prefix"}


def environ(scheme: str, server: Deaf) -> dict[str, str]:
    """Return credentials for the scheme's store, moved to the server."""
    endpoint = server.environ["AWS_ENDPOINT"]
    if scheme == "gs":
        key = {"private_key": SECRET, "private_key_id": SECRET, "client_email": "a@b", "disable_oauth": True}
        return {"GOOGLE_BASE_URL": endpoint, "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key)}
    return {
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_STORAGE_ACCOUNT_KEY": SECRET,
        "AZURE_STORAGE_ENDPOINT": f"{endpoint}/account",
    }


@pytest.fixture
def deaf(request: pytest.FixtureRequest) -> Iterator[Deaf]:
    server = Deaf(request.param)
    yield server
    server.close()


def code(value: str) -> str:
    return f"<Error><Code>{value}</Code><Message>{SECRET}</Message></Error>"


@pytest.mark.parametrize("scheme", URLS)
@pytest.mark.parametrize(
    ("deaf", "remedy"),
    [
        (http(401), "look at"),
        (http(403, code("AuthenticationFailed")), "look at"),
        (http(404, code("NoSuchBucket")), "create the"),
        (http(404, code("ContainerNotFound")), "does not exist.*create the"),
        (http(501), "only if there is none"),
    ],
    indirect=["deaf"],
)
def test_refused_for_good(scheme: str, deaf: Deaf, remedy: str) -> None:
    """A refusal names the remedy, in the words of that store, and nothing of what the store said but its code."""
    store = open_store(URLS[scheme], environ(scheme, deaf))
    for use in (lambda: store.put_new("a", b""), lambda: store.get("a"), lambda: names(store)):
        with pytest.raises(AccessError, match=remedy) as caught:
            use()
        assert SECRET not in str(caught.value)
        assert "AWS_" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("scheme", URLS)
@pytest.mark.parametrize("deaf", [None, b"", http(500), http(503)], indirect=True)
def test_no_answer(scheme: str, deaf: Deaf) -> None:
    """C57: a put whose answer is lost was sent once and is an unknown outcome; a read is unavailable."""
    store = open_store(URLS[scheme], environ(scheme, deaf), timeout=timedelta(seconds=0.2))
    with pytest.raises(OutcomeUnknownError, match="a was sent"):
        store.put_new("a", b"")
    assert len(deaf.connections) == 1
    with pytest.raises(UnavailableError, match="did not answer for a"):
        store.get("a")


@pytest.mark.parametrize("scheme", URLS)
@pytest.mark.parametrize("deaf", [http(409, code("BlobAlreadyExists")), http(412)], indirect=True)
def test_c42_conflicts_are_taken_for_an_existing_object(scheme: str, deaf: Deaf) -> None:
    """C42: 409 and 412: look again, do not overwrite."""
    with pytest.raises(ObjectExistsError):
        open_store(URLS[scheme], environ(scheme, deaf)).put_new("a", b"")


ALWAYS_DONE = b'HTTP/1.1 201 x\r\nContent-Length: 0\r\nETag: "x"\r\nx-goog-generation: 1\r\nConnection: close\r\n\r\n'


@pytest.mark.parametrize("scheme", URLS)
@pytest.mark.parametrize("deaf", [ALWAYS_DONE], indirect=True)
def test_c42_a_store_that_knows_no_condition_is_found_before_the_first_seal(scheme: str, deaf: Deaf) -> None:
    """C42: an endpoint that takes every put is refused by the check that comes before a seal, not by a lost one."""
    store = open_store(URLS[scheme], environ(scheme, deaf), timeout=timedelta(seconds=1))
    with pytest.raises((AccessError, UnavailableError)):
        check_conditional_put(store, "daily")


def test_credentials_may_stand_in_files(tmp_path: Path) -> None:
    """A secret's file is named by ``<NAME>_FILE``; the value itself wins, and a file that is not there is told."""
    secret = tmp_path / "key"
    secret.write_text(f"{SECRET}\n")
    given = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY_FILE": str(secret)}
    assert buckets.options(buckets.AZURE, given)["account_key"] == SECRET
    assert buckets.options(buckets.AZURE, given | {"AZURE_STORAGE_ACCOUNT_KEY": "other"})["account_key"] == "other"
    assert buckets.options(buckets.S3, {"AWS_SECRET_ACCESS_KEY_FILE": str(secret)}) == {"secret_access_key": SECRET}
    with pytest.raises(ConfigError, match=r"AWS_SECRET_ACCESS_KEY_FILE.*cannot be read"):
        buckets.options(buckets.S3, {"AWS_SECRET_ACCESS_KEY_FILE": str(tmp_path / "none")})


BAD: list[tuple[str, dict[str, str], str]] = [
    ("az://container", {"AZURE_STORAGE_ACCOUNT_KEY": SECRET}, "AZURE_STORAGE_ACCOUNT_NAME"),
    ("az://container", {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_STORAGE_ACCOUNT_KEY": "no base64"}, "AZURE_STORAGE"),
    ("gs://bucket", {"GOOGLE_SERVICE_ACCOUNT_KEY": SECRET}, "GOOGLE_APPLICATION_CREDENTIALS"),
    ("gs://bucket", {"GOOGLE_SERVICE_ACCOUNT": "/none.json"}, "GOOGLE_APPLICATION_CREDENTIALS"),
    ("gs://bucket", {"GOOGLE_BASE_URL": f"http://user:{SECRET}@host"}, "write https"),
    (f"gs://user:{SECRET}@bucket", {}, "environment"),
    (f"az://container?sig={SECRET}", {}, "environment"),
]


@pytest.mark.parametrize(("url", "given", "remedy"), BAD)
def test_what_cannot_be_used_is_told_at_once(url: str, given: dict[str, str], remedy: str) -> None:
    """Missing or wrong credentials are a fault of the configuration, with the remedy and without the secret."""
    with pytest.raises(ConfigError, match=remedy) as caught:
        open_store(url, given)
    assert SECRET not in str(caught.value)


def test_urls_name_bucket_and_prefix() -> None:
    """What a person is shown of a store has no credentials."""
    key = {"private_key": SECRET, "private_key_id": "x", "client_email": "a@b", "disable_oauth": True}
    store: Store = open_store("gs://bucket/a/b/", {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key)})
    assert store.url == "gs://bucket/a/b"
