"""Texts of a node's Prometheus endpoints, damaged: read as the only source, or next to the management API."""

from random import Random

from bench.fuzz import recordings
from bench.fuzz.cases import FuzzCase
from bench.fuzz.driver import fuzz_bench
from bench.fuzz.mutator import NUMBERS, Mutator
from bench.fuzz.transport import MemoryNetwork, answer
from bench.fuzz.whole_way import CaseClock, ClusterReading, WholeWay
from exporter.broker.prometheus.settings import SourceChoice

_VERSIONS = ("3.10.8", "4.0.5", "4.3.6")
_VALUES = ("NaN", "+Inf", "-Inf", "1e400", "0x1", "1_0", "", " ", "9" * 400, "1 1700000000000", "true", "²", "-0")
_LINES = (
    *("{", "}", "# TYPE", "# TYPE x histogram", "# HELP x \\", "# EOF", "x{", 'x{a="', 'x{a="b"', "x{a=b} 1", "x{} 1"),
    *('x{="b"} 1', "=1", "x 1 2 3", 'x{a="\\', "\x00", "\ufeffx 1", "x" * 70_000, "x{" + 'a="b",' * 5000 + "} 1", "\r"),
    *('rabbitmq_identity_info{rabbitmq_node="a@b",rabbitmq_cluster="c"} 1', "rabbitmq_identity_info{} 1"),
)


class PrometheusTexts:
    """The target."""

    def __init__(self) -> None:
        self._network, self._clock = MemoryNetwork(), CaseClock()
        self._way = WholeWay(self._clock)

    def make(self, rng: Random) -> FuzzCase:
        """Damage one or both texts of a node."""
        base = rng.choice(_VERSIONS)
        texts = recordings.prometheus_texts(base)
        chosen = rng.choice((["/metrics"], ["/metrics/detailed"], list(texts)))
        return FuzzCase(base, {path: _damaged(texts[path], rng) for path in chosen}, rng.randrange(2**16))

    def check(self, case: FuzzCase) -> None:
        """Read the recorded texts, then the damaged ones."""
        sources = SourceChoice.BOTH if case.variety % 4 == 3 else SourceChoice.PROMETHEUS
        texts = {path: answer(text, kind="text/plain") for path, text in recordings.prometheus_texts(case.base).items()}
        known = {**recordings.answers(case.base), **texts}
        reading = ClusterReading(self._clock, sources)
        seen = []
        with self._network.connected():
            for seconds, answers in ((0.0, known), (15.0, {**known, **case.inputs})):
                self._network.answers, self._clock.seconds = answers, seconds
                seen.append(reading.snapshot())
            reading.close()
        self._way.show(seen, case.variety)

    def close(self) -> None:
        """Remove the files."""
        self._way.close()


def _damaged(text: bytes, rng: Random) -> bytes:
    mutator = Mutator(rng)
    if rng.random() < 0.1:
        return mutator.bytes(answer(text, kind="text/plain"))
    if rng.random() < 0.1:
        return answer(mutator.bytes(text), kind="text/plain")
    lines = text.decode().split("\n")
    for _ in range(rng.choice((1, 1, 3, 10, 100))):
        number = rng.randrange(len(lines))
        name, space, value = lines[number].rpartition(" ")
        match rng.randrange(8):
            case 0 | 1:
                lines[number] = f"{name}{space}{rng.choice(NUMBERS)}"
            case 2:
                lines[number] = f"{name}{space}{rng.choice(_VALUES)}"
            case 3:
                lines[number] = f"{mutator.text(name)}{space}{value}"
            case 4:
                start = lines[number].find('="') + 2
                end = lines[number].find('"', start)
                lines[number] = lines[number][:start] + mutator.word() + lines[number][end:]
            case 5:
                lines[number] = rng.choice(_LINES)
            case 6:
                lines[number:number] = [lines[number]] * rng.choice((1, 2, 200))
            case _:
                del lines[number : number + rng.choice((1, 1, 20))]
                lines = lines or [""]
    return answer("\n".join(lines).encode("utf-8", "surrogatepass"), kind="text/plain; version=0.0.4")


TARGET = PrometheusTexts
BENCH = fuzz_bench(
    "prometheus",
    "damaged texts of Prometheus endpoints, from their bytes to everything that ackscope shows",
    what="texts",
    inputs=100_000,
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
