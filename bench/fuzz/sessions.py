"""Answers about AMQP 1.0 sessions, damaged, with the connections and consumers that they belong to."""

from random import Random
from typing import Any

import orjson

from bench.fuzz import recordings
from bench.fuzz.broker import DamagedAnswers
from bench.fuzz.cases import FuzzCase
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.transport import MemoryNetwork, answer
from bench.fuzz.whole_way import CaseClock, ClusterReading, WholeWay

_BASE = "4.3.6"
_FILE = recordings.CRASHERS / "amqp10.json"
"""What a broker of 4.3.6 answered about a consumer and a publisher: path -> document."""


class AmqpSessionAnswers:
    """The target."""

    def __init__(self) -> None:
        self._network, self._clock = MemoryNetwork(), CaseClock()
        self._way = WholeWay(self._clock)
        added: dict[str, Any] = orjson.loads(_FILE.read_bytes())
        self._documents = {**{path: orjson.loads(it) for path, (it, _) in recordings.recorded(_BASE).items()}, **added}
        self._known = {**recordings.answers(_BASE), **{path: answer(orjson.dumps(it)) for path, it in added.items()}}
        self._paths = tuple(added)
        self._sessions = tuple(path for path in added if path.endswith("/sessions"))

    def make(self, rng: Random) -> FuzzCase:
        """Damage the sessions of one connection, of both, or all answers that are joined."""
        chosen = rng.choice((self._sessions[:1], self._sessions, self._paths))
        damage = DamagedAnswers(rng)
        return FuzzCase(
            _BASE,
            {path: damage.damaged(orjson.dumps(self._documents[path]), "200 OK") for path in chosen},
            rng.randrange(2**16),
        )

    def check(self, case: FuzzCase) -> None:
        """Read the recorded answers, then the damaged ones."""
        reading = ClusterReading(self._clock)
        families = ("overview", "nodes", "connections", "consumers", "sessions")
        seen = []
        with self._network.connected():
            for seconds, inputs in ((0.0, {}), (5.0, case.inputs), (70.0, case.inputs)):
                self._network.answers, self._clock.seconds = {**self._known, **inputs}, seconds
                seen.append(reading.snapshot(families if inputs else (*families, "queues", "channels")))
            reading.close()
        self._way.show(seen, case.variety)

    def close(self) -> None:
        """Remove the files."""
        self._way.close()


TARGET = AmqpSessionAnswers
BENCH = fuzz_bench(
    "sessions",
    "damaged answers about AMQP 1.0 sessions and their links, joined with consumers and connections",
    what="session answers",
    inputs=100_000,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
