"""Diagnosis bundles, damaged: unpacked, diagnosed, and shown as a report and as JSON."""

import gzip
from random import Random
from typing import Any

import orjson

from ackscope.errors import DataError
from bench.fuzz import recordings
from bench.fuzz.cases import FuzzCase, one_line
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import Mutator
from bench.fuzz.transport import MemoryNetwork
from bench.fuzz.whole_way import CLUSTER, CaseClock, ClusterReading, later
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.bundle import DiagnosisBundle, judge, pack_bundle, unpack_bundle
from exporter.api.documents import as_json, cluster_findings
from exporter.commands.diagnose import terminal_report

_INPUT = "bundle"
_SECONDS = (5.0, 70.0, 140.0)


class Bundles:
    """The target."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def make(self, rng: Random) -> FuzzCase:
        """Damage the JSON of a bundle, or its bytes."""
        base = rng.choice(recordings.bases())
        packed, mutator = self._packed(base), Mutator(rng)
        if rng.random() < 0.1:
            return FuzzCase(base, {_INPUT: mutator.bytes(packed)})
        text = gzip.decompress(packed)
        if rng.random() < 0.1:
            return FuzzCase(base, {_INPUT: gzip.compress(mutator.bytes(text), 1, mtime=0)})
        document: Any = orjson.loads(text)
        # The latest snapshot is diagnosed; the others are its past.
        part = rng.choice(("snapshots", "snapshots", "snapshots", "trail", "thresholds", "now", "outcomes", ""))
        if part == "snapshots":
            number = rng.choice((-1, -1, 0))
            family = rng.choice(list(document["snapshots"][number]))
            document["snapshots"][number][family] = mutator.structure(document["snapshots"][number][family])
        elif part:
            document[part] = mutator.structure(document[part])
        changed = mutator.text_of(document if part else mutator.structure(document))
        return FuzzCase(base, {_INPUT: gzip.compress(changed.encode("utf-8", "surrogatepass"), 1, mtime=0)})

    def check(self, case: FuzzCase) -> None:
        """It is refused in one line, or diagnosed."""
        try:
            seen = unpack_bundle(case.inputs.get(_INPUT) or self._packed(case.base))
            verdict = judge(seen)
            as_json(cluster_findings(verdict.cluster, seen.window.latest, verdict, seen.now))
            terminal_report(seen, verdict, everything=True)
        except DataError as error:
            one_line(str(error), "the error")

    def close(self) -> None:
        """Nothing is open."""

    def _packed(self, base: str) -> bytes:
        if base not in self._known:
            network, clock, window = MemoryNetwork(), CaseClock(), Window.empty(CLUSTER)
            network.answers = recordings.answers(base)
            with network.connected():
                reading = ClusterReading(clock)
                snapshot = reading.snapshot()
                reading.close()
            for seconds in _SECONDS:
                window = window.add(later(snapshot, seconds))
            clock.seconds = _SECONDS[-1]
            bundle = DiagnosisBundle(window=window, outcomes=(), now=clock.now(), thresholds=Thresholds())
            self._known[base] = pack_bundle(bundle)
        return self._known[base]


TARGET = Bundles
BENCH = fuzz_bench(
    "bundles",
    "damaged diagnosis bundles: unpacked, diagnosed, shown as a report and as JSON",
    what="bundles",
    inputs=100_000,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
