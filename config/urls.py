"""Server and store URLs: which this version speaks, and how they are shown without their secrets."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]*)(?::[0-9]+)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,30}")
_PORT = re.compile(r":(\d+)(?:,|$)")
#: What a bucket may be called, which Azure calls a container.
_BUCKETS = {
    "s3": re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"),
    "gs": re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
    "az": re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]"),
}
_PLAIN_OPTIONS = frozenset({"db", "dbname", "host", "port", "protocol", "sslmode"})
_REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_SERVICE = re.compile(r"/[A-Za-z0-9._-]{1,255}(?:/[0-9]{1,4})?")
#: What may stand behind the ? of a Redis URL, and what its value looks like.
_REDIS_OPTIONS = {
    **dict.fromkeys(("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password"), ".+"),
    "ssl_cert_reqs": "required|optional|none",
    "ssl_check_hostname": "(?i:true|false)",
    "protocol": "2|3",
    "db": "[0-9]{1,4}",
}
_SENTINEL_OPTIONS = {"sentinel_username": ".+", "sentinel_password": ".+"}
_ENCODE = "percent-encode special characters in a user name or password, / as %2F, @ as %40, # as %23"


def check_redis(url: str) -> str:
    """Return ``url`` if it is of a Redis that this version speaks; raise ValueError, without the secret, otherwise."""
    parts = _split(url, _REDIS, "redis://127.0.0.1:6379/0")
    _check_options(parts)
    if parts.scheme == "unix":
        if not parts.path.startswith("/") or len(parts.path) < 2:
            raise ValueError("must name the socket by its absolute path, like unix:///run/redis/redis.sock")
        return url
    if parts.scheme.endswith(("+sentinel", "+cluster")):
        _check_nodes(parts)
        return url
    if not parts.hostname or "," in parts.netloc:
        raise ValueError("must name one host, like redis://127.0.0.1:6379/0")
    if not re.fullmatch(r"/?|/[0-9]{1,4}", parts.path):
        raise ValueError("must end in the number of the database, like redis://127.0.0.1:6379/0")
    return url


def _check_options(parts: SplitResult) -> None:
    """Raise ValueError for an option that is not one of a Redis URL; the values of options may be secrets."""
    known = dict(_REDIS_OPTIONS)
    if parts.scheme.endswith("+sentinel"):
        known |= _SENTINEL_OPTIONS
    if not parts.scheme.startswith("rediss"):
        known = {name: known[name] for name in known if not name.startswith("ssl")}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in known:
            raise ValueError(f"must have no option but {', '.join(sorted(known))}")
        if not re.fullmatch(known[name], value):
            raise ValueError(f"must have a {name} that is like {known[name]}")


def _check_nodes(parts: SplitResult) -> None:
    """Raise ValueError unless every host of a Sentinel's or a cluster's URL is named, and its path is right."""
    if not all(urlsplit(f"//{host}").hostname for host in parts.netloc.rpartition("@")[2].split(",")):
        raise ValueError(f"must name each host, like {parts.scheme}://host1:26379,host2:26379")
    if parts.scheme.endswith("+sentinel") and not _SERVICE.fullmatch(parts.path):
        raise ValueError(f"must name the service that the Sentinels watch, like {parts.scheme}://h1:26379,h2/boards/0")
    if parts.scheme.endswith("+cluster") and parts.path not in ("", "/", "/0"):
        raise ValueError("must name no database but 0: a cluster has one")


def check_postgres(url: str) -> str:
    """Return ``url`` if it is a PostgreSQL URL; raise ValueError, without the secret, otherwise."""
    parts = _split(url, ("postgresql", "postgres"), "postgresql://user@127.0.0.1:5432/finale")
    if parts.path.count("/") > 1:
        raise ValueError("must have one database name after the host, like postgresql://127.0.0.1:5432/finale")
    return url


def check_store(url: str) -> str:
    """Return ``url`` if it is a folder or a cloud's bucket; raise ValueError, without the secret, otherwise."""
    parts = _split(url, ("file", *_BUCKETS), "file:///var/lib/finale/archive or s3://bucket/prefix")
    if "@" in parts.netloc or parts.query:
        raise ValueError("must not hold credentials or options; the AWS_…, GOOGLE_… or AZURE_… variables give them")
    if parts.scheme == "file" and (parts.netloc or len(parts.path) < 2):
        raise ValueError("must name the folder by its absolute path, like file:///var/lib/finale/archive")
    if parts.scheme in _BUCKETS and not _BUCKETS[parts.scheme].fullmatch(parts.netloc):
        raise ValueError(f"must name a bucket, like {parts.scheme}://bucket/prefix")
    if any(piece in (".", "..") for piece in unquote(parts.path).split("/")):
        raise ValueError("must not have . or .. in its path")
    return url


def masked(url: str) -> str:
    """Return ``url`` as it may be shown: scheme, hosts, ports and database, anything else as ``***``."""
    scheme, _, rest = url.partition("://")
    if not rest or not _SCHEME.fullmatch(scheme):
        return "***"
    try:
        parts = urlsplit(url)
        options = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:  # its message holds the URL
        return f"{scheme}://***"
    userinfo, at, hosts = parts.netloc.rpartition("@")
    if parts.fragment or "@" in rest[len(parts.netloc) :] or not _HOSTS.fullmatch(hosts):
        return f"{scheme}://***"
    user = at and ("***:***@" if ":" in userinfo else "***@")
    shown = [f"{name}={value if name in _PLAIN_OPTIONS else '***'}" for name, value in options]
    return f"{scheme}://{user}{hosts}{parts.path}" + ("?" + "&".join(shown) if shown else "")


def _split(url: str, spoken: tuple[str, ...], example: str) -> SplitResult:
    """Return the parts of ``url``; raise ValueError for another scheme, a bad port or characters left unencoded."""
    scheme, separator, rest = url.partition("://")
    if not separator or not _SCHEME.fullmatch(scheme):
        raise ValueError(f"must be a URL like {example}")
    use = ", ".join(f"{name}://" for name in spoken)
    if scheme not in spoken:
        raise ValueError(f"{scheme}:// is not spoken here; use {use}")
    if not url.isprintable() or " " in url:
        raise ValueError(f"must not hold spaces or unprintable characters; {_ENCODE}")
    try:
        parts = urlsplit(url)
    except ValueError:  # its message holds the URL
        raise ValueError(f"must be a URL like {example}; {_ENCODE}") from None
    hosts = parts.netloc.rpartition("@")[2]
    if parts.fragment or "@" in rest[len(parts.netloc) :] or not _HOSTS.fullmatch(hosts):
        raise ValueError(f"the host, port or path cannot be read; {_ENCODE}")
    if any(not 0 < int(port) < 65_536 for port in _PORT.findall(hosts)):
        raise ValueError("the port must be a number from 1 to 65535")
    return parts
