"""Google's storage as its documents describe the XML protocol, for as long as the block lasts.

It is the one that moto's S3 server speaks, but for the condition of a put, ``x-goog-if-generation-match: 0`` (there is
no generation of the object yet), which this server translates on the way there. No emulator at hand has it.
Rule: Cloud Storage XML API, "PUT Object" and "Request preconditions".
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

from tests.support.clouds import CloudServer
from tests.support.s3 import S3Server

_CONDITION = "x-goog-if-generation-match"
_HOP = {"authorization", "connection", "transfer-encoding", "content-length", "date", "server"}
# A service account's key, of a kind that asks nobody for a token.
_KEY = {"private_key": "none", "private_key_id": "none", "client_email": "none", "disable_oauth": True}

# Whoever signs it may read what moto holds; it checks no signature.
_SIGNED = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=none"


@contextmanager
def gcs_server(behind: S3Server) -> Iterator[CloudServer]:
    """Serve Google's protocol from what the S3 server holds."""
    host, port = urlsplit(behind.endpoint).netloc.split(":")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            headers["Authorization"] = _SIGNED
            condition = headers.pop(_CONDITION, None)
            if condition is not None:
                assert condition == "0"
                headers["If-None-Match"] = "*"
            place, _, query = self.path.partition("?")
            connection = http.client.HTTPConnection(host, int(port), timeout=30)
            connection.request(self.command, f"{unquote(place)}{'?' + query if query else ''}", body, headers)
            answer = connection.getresponse()
            data = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("x-goog-generation", "1")
            length = answer.headers.get("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            connection.close()

        do_GET = do_PUT = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names that http.server looks for

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        environ = {"GOOGLE_BASE_URL": endpoint, "GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(_KEY)}
        yield CloudServer("gs", endpoint, environ, behind.bucket)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
