"""`python static.py PLAIN PACKED`: answer every request with the bytes of a file, until stdin closes.

This is the lower bound for scrapes, with a minimal server of the standard library. It prints its URL.
"""

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Handler(BaseHTTPRequestHandler):
    plain, packed = b"", b""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        compressed = "gzip" in self.headers.get("Accept-Encoding", "")
        body = self.packed if compressed else self.plain
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's signature
        """Say nothing."""


if __name__ == "__main__":
    _Handler.plain, _Handler.packed = (Path(name).read_bytes() for name in sys.argv[1:3])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}/metrics", flush=True)
    sys.stdin.read()
