"""Error replies of Redis that show a server of another kind than its URL says."""

from __future__ import annotations


def url_hint(reply: str) -> str:
    """Return which URL is right for the server that gave the error ``reply``; nothing if it does not show that.

    Rule: what a Sentinel, a node of a cluster and an ordinary server say to commands of another kind's.
    """
    words = reply.upper()
    if "MOVED" in words.split():
        return "if the URL is redis://, this is a node of a cluster: write redis+cluster://host:port"
    if "UNKNOWN COMMAND" not in words:
        return ""
    if "SENTINEL" in words:
        return "this is no Sentinel: name the Sentinels' own ports, 26379 as a rule, or write redis:// for one server"
    return (
        "if this is a Sentinel, write redis+sentinel://host:26379/SERVICE; else see that the server is 6.2 or newer "
        "and has this command under its own name"
    )
