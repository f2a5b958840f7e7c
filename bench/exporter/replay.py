"""`python -m bench.exporter.replay --recording FILE --queues N`: serve a scaled recording until stdin closes.

It runs in its own process, so that its CPU time is not counted. It prints its URL. Before each response it sleeps as
long as a broker would take for that many queues.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from ackscope.cli import Parser
from ackscope.errors import BrokerError
from bench.exporter.recording import Recording
from bench.exporter.scaled import Scaled

TOTALS_US, FULL_US = 55.0, 200.0
"""Microseconds that a 4.3.6 broker takes per queue in the list of totals, and with full statistics."""


class Quiet(ThreadingHTTPServer):
    """A server that logs no disconnects, because exporters are stopped during responses."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing."""


def _serve(scaled: Scaled, totals_us: float, full_us: float) -> Quiet:
    class ReplayHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            began = time.monotonic()
            made = scaled.answer(self.path)
            pace = made.queues * (full_us if made.full else totals_us) / 1e6
            time.sleep(max(0.0, began + pace - time.monotonic()))
            self.send_response(made.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(made.body)))
            self.end_headers()
            self.wfile.write(made.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's signature
            """Say nothing."""

    return Quiet(("127.0.0.1", 0), ReplayHandler)


@contextmanager
def replaying(recording: Path, queues: int, *, paced: bool = True) -> Iterator[str]:
    """Run the server while the block runs; yield its base URL, with credentials that it does not check.

    Raises:
        BrokerError: it did not start.
    """
    words = [sys.executable, "-m", "bench.exporter.replay", "--recording", str(recording), "--queues", str(queues)]
    words += [] if paced else ["--totals-us", "0", "--full-us", "0"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline().strip() if process.stdout else ""
        if not line:
            raise BrokerError("the replay server did not start")
        yield line
    finally:
        process.terminate()
        process.communicate()


def main() -> int:
    """Serve until stdin closes."""
    parser = Parser(prog="python -m bench.exporter.replay", description="Serve a recorded broker, scaled.")
    _add_arguments(parser)
    args = parser.parse_args()
    server = _serve(Scaled(Recording.load(args.recording), args.queues), args.totals_us, args.full_us)
    Thread(target=server.serve_forever, args=(0.2,), daemon=True).start()
    print(f"http://guest:guest@127.0.0.1:{server.server_address[1]}", flush=True)
    sys.stdin.read()
    server.shutdown()
    return 0


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--recording", type=Path, required=True, metavar="FILE", help="made by bench.exporter.growth")
    parser.add_argument("--queues", type=int, required=True, metavar="N", help="how many there shall be")
    parser.add_argument("--totals-us", type=float, default=TOTALS_US, help=f"per queue (default {TOTALS_US:g})")
    parser.add_argument("--full-us", type=float, default=FULL_US, help=f"per queue (default {FULL_US:g})")


if __name__ == "__main__":
    raise SystemExit(main())
