"""Responses of a real broker to the exporter, recorded by a proxy and stored in a file for replay."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests

_TIMEOUT = 60
_MAX_ANSWERS = 500
"""Maximum number of responses; requests for single queues can be numerous, and not all are needed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response: status and JSON text."""

    status: int
    body: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Responses by request target, which is path and query.

    Attributes:
        queues: objects of the full list of queues.
        totals: objects of the list of totals; empty if the broker does not support it.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    queues: list[dict[str, Any]] = field(default_factory=list)
    totals: list[dict[str, Any]] = field(default_factory=list)

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> "Recording":
        """Read what `save` wrote."""
        known = json.loads(path.read_text())
        answers = {target: Answer(**answer) for target, answer in known["answers"].items()}
        return cls(answers, known["queues"], known["totals"])


def record_queues(management: str, recording: Recording) -> None:
    """Request the list of queues with full statistics, and the list of totals."""
    recording.queues.extend(requests.get(f"{management}/api/queues", timeout=_TIMEOUT).json())
    totals = requests.get(
        f"{management}/api/queues", params={"disable_stats": "true", "enable_queue_totals": "true"}, timeout=_TIMEOUT
    ).json()
    recording.totals.extend(totals if isinstance(totals, list) else totals.get("items", []))


@contextmanager
def recording_proxy(management: str, recording: Recording, targets: list[str] | None = None) -> Iterator[str]:
    """Run a proxy that records every response of a broker; yield its base URL without credentials.

    Args:
        management: base URL of the broker's API, with credentials.
        recording: receives the responses.
        targets: receives every request target, in order.
    """
    upstream = requests.Session()

    class RecordingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = upstream.get(management + self.path, timeout=_TIMEOUT)
            if targets is not None:
                targets.append(self.path)
            if len(recording.answers) < _MAX_ANSWERS:
                recording.answers[self.path] = Answer(answer.status_code, answer.text)
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's signature
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), RecordingHandler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
