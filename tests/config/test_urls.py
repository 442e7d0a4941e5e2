"""URLs: what is spoken, what is refused, and that a masked one never shows its secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.urls import check_postgres, check_redis, check_store, masked

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("check", "url"),
    [
        (check_redis, "redis://localhost"),
        (check_redis, "redis://user:p%40ss@127.0.0.1:6379/0"),
        (check_redis, "rediss://[::1]:6380/15"),
        (check_redis, "unix:///run/redis.sock?db=2"),
        (check_redis, "unix://:pw@/run/redis.sock"),
        (check_redis, "redis://h/0?protocol=3"),
        (check_redis, "rediss://h?ssl_ca_certs=/etc/ca.pem&ssl_check_hostname=false"),
        (check_redis, "redis+sentinel://h1:26379,h2/boards"),
        (check_redis, "rediss+sentinel://u:p%40ss@[::1]:1,h2:2/my.boards_1/3?sentinel_password=x&protocol=2"),
        (check_redis, "redis+cluster://u:p@h1:7000,h2:7001,h3"),
        (check_redis, "rediss+cluster://h1/0?ssl_cert_reqs=none"),
        (check_postgres, "postgresql://u:p@h:5432/db?sslmode=require"),
        (check_postgres, "postgres://h1:1,h2:2/db"),
        (check_postgres, "postgresql:///db?host=/run/postgresql"),
        (check_postgres, "postgresql://finale@/db?host=%2Frun&port=5432"),
        (check_store, "file:///var/lib/finale/archive"),
        (check_store, "s3://my-bucket"),
        (check_store, "s3://my.bucket/a/prefix"),
        (check_store, "gs://my_bucket.example/a/prefix"),
        (check_store, "az://my-container/prefix"),
    ],
)
def test_what_is_spoken(check, url):
    """These URLs are taken as they are."""
    assert check(url) == url


@pytest.mark.parametrize(
    ("check", "url"),
    [
        (check_redis, ""),
        (check_redis, "localhost:6379"),
        (check_redis, "redis://"),
        (check_redis, "redis://h:port"),
        (check_redis, "redis://h:70000"),
        (check_redis, "redis://h:0"),
        (check_redis, "redis://h/name"),
        (check_redis, "redis://h1,h2"),
        (check_redis, "redis://h /0"),
        (check_redis, "redis://[::1"),
        (check_redis, "redis://h?socket_timeout=1"),
        (check_redis, "redis://h?ssl_ca_certs=/etc/ca.pem"),
        (check_redis, "redis://h?protocol=4"),
        (check_redis, "redis://h?sentinel_password=x"),
        (check_redis, "rediss://h?ssl_check_hostname=maybe"),
        (check_redis, "redis+sentinel://h1:26379"),
        (check_redis, "redis+sentinel://h1:26379/boards/db"),
        (check_redis, "redis+sentinel://h1:26379,/boards"),
        (check_redis, "redis+sentinel:///boards"),
        (check_redis, "redis+sentinel://h1,h2:x/boards"),
        (check_redis, "redis+cluster://h1,h2/1"),
        (check_redis, "redis+cluster://"),
        (check_redis, "unix://"),
        (check_redis, "unix:///"),
        (check_postgres, "postgresql"),
        (check_postgres, "redis://h"),
        (check_postgres, "postgresql://h/a/b"),
        (check_postgres, "postgresql://h:1,h2:x/db"),
        (check_store, "/var/lib/finale"),
        (check_store, "file://relative/path"),
        (check_store, "file:///"),
        (check_store, "file:///a/../b"),
        (check_store, "s3://"),
        (check_store, "s3://Bucket_"),
        (check_store, "s3://bucket?endpoint=x"),
        (check_store, "az://Container"),
        (check_store, "az://my--container"),
        (check_store, "az://key@container"),
        (check_store, "gs://b"),
        (check_store, "gcs://bucket"),
        (check_store, "https://account.blob.core.windows.net/container"),
    ],
)
def test_what_is_refused(check, url):
    """Anything else is a ValueError with words for a person."""
    with pytest.raises(ValueError, match=r"must|spoken|speak|cannot be read"):
        check(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"redis://:{SECRET}@h:6379/0", "redis://***:***@h:6379/0"),
        (f"redis://{SECRET}@h", "redis://***@h"),
        ("redis://h:1/2", "redis://h:1/2"),
        (f"redis+cluster://u:{SECRET}@h1:1,h2:2", "redis+cluster://***:***@h1:1,h2:2"),
        (f"redis+sentinel://h1,h2/b?sentinel_password={SECRET}", "redis+sentinel://h1,h2/b?sentinel_password=***"),
        (f"postgresql://u:{SECRET}@h1:1,h2:2/db", "postgresql://***:***@h1:1,h2:2/db"),
        (f"postgresql:///db?host=/run&password={SECRET}&user=x", "postgresql:///db?host=/run&password=***&user=***"),
        (f"unix://u:{SECRET}@/run/r.sock?db=1", "unix://***:***@/run/r.sock?db=1"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        (f"redis://:pa/{SECRET}@h", "redis://***"),
        (f"redis://:pa#{SECRET}@h", "redis://***"),
        (f"redis://:pa?{SECRET}@h", "redis://***"),
        (f"redis://:{SECRET}", "redis://***"),
        (f"redis://[{SECRET}", "redis://***"),
        (f"{SECRET}", "***"),
        (f"{SECRET}://", "***"),
        ("", "***"),
    ],
)
def test_masked(url, shown):
    """Host, port and database show; user, password and whatever cannot be read do not."""
    assert masked(url) == shown
    assert SECRET not in masked(url)


@given(
    st.sampled_from(["redis", "rediss", "redis+sentinel", "rediss+cluster", "postgresql", "s3", "file", "x"]),
    st.text("aZ09:/?#[]@!%&= ", max_size=8),
    st.text("aZ09:/?#[]@!%&= ", max_size=8),
)
def test_no_check_and_no_mask_shows_a_password(scheme, before, after):
    """However a password is written into a URL, encoded or not, neither a refusal nor the masked URL shows it."""
    url = f"{scheme}://user:{before}{SECRET}{after}@host/0"
    assert SECRET not in masked(url)
    for check in (check_redis, check_postgres, check_store):
        try:
            check(url)
        except ValueError as error:
            assert SECRET not in str(error)
