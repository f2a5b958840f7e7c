"""Comparison with RabbitMQ PerfTest in alternating runs on one queue, each checked against its captured packets."""

import argparse
import re
import subprocess
from collections.abc import Iterable, Sequence

from ackscope.errors import BrokerError
from bench.bench import Bench, Document, add_seconds, progress
from bench.capture.confirms import PublishingChannel
from bench.probes.child import ProbeProcess, confirm_settings
from bench.probes.maven import VERSION, perf_test
from bench.probes.packets import captured
from bench.tables import median, ms, quantile, table, us, wrap
from lab.cluster import Lab, start_lab
from probes.queues import QueueSpec

RATES = (200, 1000)
SIZE = 64
WARM = 3
"""Seconds at the start of each run that are not evaluated, because the JVM compiles its code."""

POINTS = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
_QUEUE = "ackscope.bench.perftest"
_WINDOW = 20_000
_SECOND = re.compile(
    r"time (?P<time>[0-9.]+) s.*?confirm latency: "
    r"[0-9]+/(?P<p50>[0-9]+)/[0-9]+/(?P<p95>[0-9]+)/(?P<p99>[0-9]+)"
)

Figures = dict[str, float | None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--broker", default="4.3", help="version (default 4.3)")
    parser.add_argument("--queue-type", default="quorum", choices=("classic", "quorum"), help="(default quorum)")
    parser.add_argument("--rate", action="append", type=int, help="may be given more than once (default 200, 1000)")
    parser.add_argument("--pairs", type=int, default=3, help="runs of each, alternating (default 3)")
    add_seconds(parser, 12)


def measure(args: argparse.Namespace) -> Document:
    """Run PerfTest and the probe alternately at each rate, on one broker."""
    command = perf_test()
    rows = []
    with start_lab(args.broker) as lab:
        for rate in args.rate or RATES:
            runs: dict[str, list[dict[str, Figures]]] = {"perftest": [], "probe": []}
            for number in range(args.pairs):
                progress(f"{rate}/s, pair {number + 1} of {args.pairs}")
                runs["perftest"].append(_perf_test(lab, command, args.queue_type, rate, int(args.seconds)))
                runs["probe"].append(_probe(lab, args.queue_type, rate, args.seconds))
            rows.append({"rate": rate, **{name: _middle(each) for name, each in runs.items()}, "runs": runs})
        return {
            "broker": lab.broker,
            "perf_test": VERSION,
            "queue_type": args.queue_type,
            "pairs": args.pairs,
            "seconds": args.seconds,
            "rows": rows,
        }


def _perf_test(lab: Lab, command: list[str], queue_type: str, rate: int, seconds: int) -> dict[str, Figures]:
    """Run PerfTest once. Returns its printed figures, and those of the packets."""
    arguments = QueueSpec(_QUEUE, queue_type, 60).arguments
    amqp = lab.nodes[0].amqp
    words = {
        "--uri": amqp,
        "--queue": _QUEUE,
        "--queue-args": ",".join(f"{key}={value}" for key, value in arguments.items()),
        "--auto-delete": "false",
        "--exchange": "ackscope.bench",
        "--routing-key": _QUEUE,
        "--confirm": str(_WINDOW),
        "--rate": str(rate),
        "--producers": "1",
        "--consumers": "0",
        "--size": str(SIZE),
        "--time": str(seconds),
    }
    options = [word for pair in words.items() for word in pair]
    with captured(amqp) as packets:
        done = subprocess.run(
            [*command, *options, "--flag", "persistent", "--flag", "mandatory"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds + 60,
            check=False,
        )
    if done.returncode != 0:
        last = (done.stderr + done.stdout).strip().splitlines()[-1:] or ["it said nothing"]
        raise BrokerError(f"PerfTest failed: {last[0][:200]}")
    return {"own": printed(done.stdout), "wire": wire_figures(packets.channels)}


def _probe(lab: Lab, queue_type: str, rate: int, seconds: float) -> dict[str, Figures]:
    """Run the probe once. Returns the figures of its records, and those of the packets."""
    amqp = lab.nodes[0].amqp
    with (
        captured(amqp) as packets,
        ProbeProcess(amqp, confirm_settings([queue_type], rate, payload_bytes=SIZE)) as probe,
    ):
        probe.run(seconds)
    first = min(record.intended_at for record in probe.messages)
    own = [(record.intended_at - first, record.confirm) for record in probe.messages]
    return {"own": per_second(own), "wire": wire_figures(packets.channels)}


def wire_figures(channels: Sequence[PublishingChannel]) -> Figures:
    """Return the figures of the packets of the channel with most messages."""
    messages = max((list(channel.messages.values()) for channel in channels), key=len)
    return per_second(((message.sent - messages[0].sent) / 1e9, message.latency) for message in messages)


def printed(text: str) -> Figures:
    """Return the medians of the figures that PerfTest printed each second after the warm-up."""
    seconds = [found.groupdict() for found in _SECOND.finditer(text)]
    warm = [each for each in seconds if float(each["time"]) > WARM + 0.5]
    return {name: median([float(each[name]) / 1e6 for each in warm]) for name, _ in POINTS}


def per_second(messages: Iterable[tuple[float, float | None]]) -> Figures:
    """Return the same figures from messages: the quantiles of each second, and the median over the seconds.

    Args:
        messages: seconds since the first one, and latency.
    """
    seconds: dict[int, list[float]] = {}
    for at, latency in messages:
        if at >= WARM and latency is not None:
            seconds.setdefault(int(at), []).append(latency)
    return {name: median([quantile(each, share) for each in seconds.values()]) for name, share in POINTS}


def _middle(runs: Sequence[dict[str, Figures]]) -> dict[str, Figures]:
    def middle(which: str, name: str) -> float | None:
        return median([run[which][name] for run in runs])

    return {which: {name: middle(which, name) for name, _ in POINTS} for which in ("own", "wire")}


EXPLANATION = """\
PerfTest takes its first time when it has made the body, before basicPublish, and its second in handleAck on its I/O
thread. It waits for its rate limiter, and for room in its window, before the first time: that wait is in no figure
of PerfTest; the probe has it in its response time.

PerfTest sends at even gaps, the probe at random within even slots, so that more of its messages come close together:
that is in its wire column too, and is why each is compared with its own packets.

PerfTest gives a nack no latency, and has no figure for messages that were never confirmed.
"""


def lines(document: Document) -> list[str]:
    """The table."""
    head = ("rate", "", "PerfTest ms", "its wire", "off us", "probe ms", "its wire", "off us")
    rows = [
        (
            f"{row['rate']}/s" if name == POINTS[0][0] else "",
            name,
            *(
                cell
                for who in ("perftest", "probe")
                for cell in (
                    ms(row[who]["own"][name]),
                    ms(row[who]["wire"][name]),
                    us(_difference(row[who]["own"][name], row[who]["wire"][name])),
                )
            ),
        )
        for row in document["rows"]
        for name, _ in POINTS
    ]
    broker = f"RabbitMQ {document['broker']} {document['queue_type']}"
    runs = f"{document['pairs']} alternating pairs of {document['seconds']:g} s"
    return [
        f"{broker}, {SIZE} bytes, persistent; PerfTest {document['perf_test']}; {runs}",
        f"quantiles of each second after the first {WARM}, and the middle of those",
        "",
        *table(head, rows),
        "",
        *(line for text in EXPLANATION.split("\n\n") for line in wrap(f"- {text}", "  ")),
    ]


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


BENCH = Bench(
    name="perftest",
    shows="confirm latency as RabbitMQ PerfTest and as the probe tell it",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "7", "--pairs", "2"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
