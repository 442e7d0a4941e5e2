"""A real S3 protocol server (moto's) in this process, on a free port, for as long as the block lasts."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from moto.server import ThreadedMotoServer


@dataclass
class S3Server:
    """Where the server answers, and the environment that ``open_store`` needs to reach it."""

    endpoint: str

    @property
    def environ(self) -> Mapping[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": "test-key-id",
            "AWS_SECRET_ACCESS_KEY": "test-secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    def bucket(self) -> str:
        """Create an empty bucket and return its name."""
        name = f"bucket-{uuid4().hex}"  # all servers of a process share what they hold
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        with urllib.request.urlopen(request, timeout=30):
            return name


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run the server while the block lasts."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
