"""A recording scaled to any number of queues: prepared bodies, in which some queues change with each request."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from bench.exporter.recording import Answer, Recording

_CHUNK = 500
"""Number of queues per piece of the list of totals."""

CHANGING = 0.01
"""Share of the queues that change from one request to the next."""

_ONE_QUEUE = re.compile(r"/api/queues/([^/]+)/([^/]+)")


@dataclass(frozen=True, slots=True)
class Made:
    """A response.

    Attributes:
        queues: number of queues that the broker would have processed for it.
        full: whether with full statistics.
    """

    status: int
    body: bytes
    queues: int = 0
    full: bool = False


class Scaled:
    """Responses like those of the recorded broker, with another number of queues.

    Args:
        recording: source of the shapes.
        queues: number of queues, all in the virtual host `/`.
    """

    def __init__(self, recording: Recording, queues: int) -> None:
        self._count = queues
        self._answers = recording.answers
        self._full = [_frozen(shape) for shape in recording.queues]
        self._totals = [_frozen(shape) for shape in recording.totals]
        self._names = [f"queue-{number:06d}" for number in range(queues)]
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._added = [0] * queues
        self._chunks = [self._chunk(first) for first in range(0, queues, _CHUNK)]
        self._calls = 0
        self._overview = _overview(recording.answers, queues)

    def answer(self, target: str) -> Made:
        """Return the response to a request.

        Args:
            target: path and query.
        """
        asked = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(asked.query).items()}
        if asked.path == "/api/overview" and self._overview is not None:
            return Made(200, self._overview)
        if asked.path == "/api/queues":
            return self._list(query)
        if found := _ONE_QUEUE.fullmatch(asked.path):
            number = self._numbers.get(unquote(found[2]))
            return _missing(asked.path) if number is None else Made(200, self._queue(number), 1, full=True)
        known = self._answers.get(target)
        return _missing(asked.path) if known is None else Made(known.status, known.body.encode())

    def _list(self, query: Mapping[str, str]) -> Made:
        totals = query.get("disable_stats") == "true"
        if "page" not in query:
            if totals and self._totals:
                return Made(200, self._all_totals(), self._count)
            return Made(200, _joined([self._queue(number) for number in range(self._count)]), self._count, full=True)
        size = int(query.get("page_size", "100"))
        page, pages = int(query["page"]), max(1, math.ceil(self._count / size))
        if page > pages:
            return Made(400, b'{"error":"page_out_of_range"}')
        numbers = range((page - 1) * size, min(self._count, page * size))
        make = self._total if totals else self._queue
        head = orjson.dumps(
            {
                "filtered_count": self._count,
                "item_count": len(numbers),
                "page": page,
                "page_count": pages,
                "page_size": size,
                "total_count": self._count,
            }
        )
        body = head[:-1] + b',"items":' + _joined([make(number) for number in numbers]) + b"}"
        return Made(200, body, len(numbers), full=not totals)

    def _all_totals(self) -> bytes:
        """Return the list of totals after changing some queues."""
        changing = max(1, math.ceil(self._count * CHANGING / _CHUNK))
        for step in range(changing):
            place = (self._calls * changing + step) % len(self._chunks)
            for number in range(place * _CHUNK, min(self._count, (place + 1) * _CHUNK)):
                self._added[number] += 1
            self._chunks[place] = self._chunk(place * _CHUNK)
        self._calls += 1
        return b"[" + b",".join(self._chunks) + b"]"

    def _chunk(self, first: int) -> bytes:
        return b",".join(self._total(number) for number in range(first, min(self._count, first + _CHUNK)))

    def _queue(self, number: int) -> bytes:
        return _named(self._full[number % len(self._full)], self._names[number], self._added[number])

    def _total(self, number: int) -> bytes:
        shapes = self._totals or self._full
        return _named(shapes[number % len(shapes)], self._names[number], self._added[number])


def _frozen(shape: Mapping[str, Any]) -> tuple[bytes, int, int]:
    """Return an object without its name and message counts, and its total and ready messages."""
    rest = {key: value for key, value in shape.items() if key not in {"name", "messages", "messages_ready"}}
    return orjson.dumps(rest)[:-1], int(shape.get("messages") or 0), int(shape.get("messages_ready") or 0)


def _named(shape: tuple[bytes, int, int], name: str, added: int) -> bytes:
    rest, messages, ready = shape
    return b'%b,"name":"%b","messages":%d,"messages_ready":%d}' % (rest, name.encode(), messages + added, ready + added)


def _joined(items: list[bytes]) -> bytes:
    return b"[" + b",".join(items) + b"]"


def _missing(path: str) -> Made:
    return Made(404, orjson.dumps({"error": "Object Not Found", "reason": path}))


def _overview(answers: Mapping[str, Answer], queues: int) -> bytes | None:
    """Return the recorded overview with another number of queues; None without a recorded overview."""
    known = answers.get("/api/overview")
    if known is None or known.status != 200:
        return None
    overview = orjson.loads(known.body)
    overview.setdefault("object_totals", {})["queues"] = queues
    return orjson.dumps(overview)
