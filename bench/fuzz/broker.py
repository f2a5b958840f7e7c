"""Answers of the management API, damaged: the whole way from their bytes to everything that ackscope shows."""

import gzip
from collections.abc import Collection
from random import Random
from typing import Any

import orjson

from ackscope.snapshot import Snapshot
from bench.fuzz import recordings
from bench.fuzz.cases import FuzzCase
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import Mutator
from bench.fuzz.transport import MemoryNetwork, answer
from bench.fuzz.whole_way import CaseClock, ClusterReading, WholeWay, later
from exporter.broker.families import FAMILIES

_STATUSES = (
    *("200 OK", "204 No Content", "206 Partial Content", "301 Moved", "400 Bad Request", "401 Unauthorized"),
    *(
        "403 Forbidden",
        "404 Not Found",
        "405 No",
        "406 No",
        "429 Slow",
        "500 No",
        "502 No",
        "503 No",
        "599 No",
        "999 x",
    ),
)
_HEADERS = (
    *("content-encoding: gzip", "content-encoding: br", "content-encoding: deflate", "transfer-encoding: chunked"),
    *("content-type: text/html", "content-type: application/json; charset=utf-16", "content-type: \xe9", "no colon"),
    *(
        "location: https://u:hush@h/",
        "content-length: 7",
        "content-length: -1",
        "x: " + "y" * 70_000,
        "set-cookie: a=\x00",
    ),
    *("www-authenticate: Basic", "connection: keep-alive", "retry-after: NaN", "x-\x01: z"),
)
_SECOND, _THIRD = 5.0, 70.0
"""Seconds of the readings of a case: the first has the recorded answers, the others the damaged ones."""


class DamagedAnswers:
    """Damages answers, mostly the JSON of them."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def damaged(self, body: bytes, status: str) -> bytes:
        """Return the bytes of an answer whose body, status, headers or form is damaged."""
        rng, mutator = self._rng, Mutator(self._rng)
        kind = rng.random()
        if kind < 0.85:
            return answer(mutator.document(orjson.loads(body)), status)
        if kind < 0.9:
            return answer(mutator.bytes(body), status)
        if kind < 0.93:
            return answer(body, rng.choice(_STATUSES))
        if kind < 0.96:
            packed = gzip.compress(body, mtime=0) if rng.random() < 0.3 else body
            return answer(packed, status, tuple(rng.choices(_HEADERS, k=rng.choice((1, 1, 3)))))
        return mutator.bytes(answer(body, status))


class BrokerAnswers:
    """The target."""

    def __init__(self) -> None:
        self._network, self._clock = MemoryNetwork(), CaseClock()
        self._way = WholeWay(self._clock)
        self._firsts: dict[str, Snapshot] = {}

    def make(self, rng: Random) -> FuzzCase:
        """Damage a few, half or nearly all answers of one recorded broker."""
        base = rng.choice(recordings.bases())
        share, damage = rng.choice((0.1, 0.6, 0.95, 0.95)), DamagedAnswers(rng)
        known = recordings.recorded(base)
        chosen = [path for path in known if rng.random() < share] or [rng.choice(list(known))]
        inputs = {path: damage.damaged(*known[path]) for path in chosen}
        if rng.random() < 0.3:
            # Read as a large broker is: totals of all queues, statistics of some one by one.
            inputs["/api/overview"] = answer(_grown(orjson.loads(known["/api/overview"][0])))
        return FuzzCase(base, inputs, rng.randrange(2**16))

    def check(self, case: FuzzCase) -> None:
        """Read the recorded answers, then the damaged ones twice.

        Every fourth case reads everything each time with the same clients. The others read what is damaged, and that
        once, which takes a third of the time.
        """
        known, whole = recordings.answers(case.base), case.variety % 4 == 3
        reading = ClusterReading(self._clock, stepwise=case.variety % 3 == 0)
        self._clock.seconds = 0.0
        with self._network.connected():
            self._network.answers = known
            first = reading.snapshot() if whole else self._first(case.base)
            reading.start_with(first)
            self._network.answers = {**known, **case.inputs}
            self._clock.seconds = _SECOND
            second = reading.snapshot(tuple(FAMILIES) if whole else _families(case.inputs))
            self._clock.seconds = _THIRD
            third = reading.snapshot() if whole else later(second, _THIRD - _SECOND)
            reading.close()
        self._way.show((first, second, third), case.variety)

    def _first(self, base: str) -> Snapshot:
        if base not in self._firsts:
            reading = ClusterReading(self._clock)
            self._firsts[base] = reading.snapshot()
            reading.close()
        return self._firsts[base]

    def close(self) -> None:
        """Remove the files."""
        self._way.close()


def _families(paths: Collection[str]) -> set[str]:
    """The families that have one of these paths, and those that others need."""
    prefixes = {name: tuple(path.partition("{")[0] for path in family.paths) for name, family in FAMILIES.items()}
    return {
        "overview",
        "nodes",
        *(name for name, known in prefixes.items() if any(it.startswith(known) for it in paths)),
    }


def _grown(overview: dict[str, Any]) -> bytes:
    overview.setdefault("object_totals", {})["queues"] = 5000
    return orjson.dumps(overview)


TARGET = BrokerAnswers
BENCH = fuzz_bench(
    "broker",
    "damaged answers of the management API, from their bytes to /metrics, API, findings, landing files and bundles",
    what="answers",
    inputs=1_000_000,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
