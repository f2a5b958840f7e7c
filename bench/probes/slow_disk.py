"""Injected slow disk: accuracy of the estimated sync time, and where the probe reports fsync."""

import argparse
from typing import Any

from ackscope.records import BatchingKind, ProbeOutcome
from bench.bench import Bench, Document, add_seconds, progress
from bench.probes.child import ProbeProcess, confirm_settings
from bench.tables import ms, percent, table, wrap
from lab.cluster import Lab, start_lab
from lab.slow_disk import slow_disk
from probes.latency_layers import decompose

DELAYS = (0.05, 0.1, 0.2, 0.3)
RATE = 200.0
CLAIM = 0.15
"""Goal: maximum relative error of the estimate."""

_CONTRAST = ["transient", "classic", "quorum"]
_LAYERS = ("persist", "replicate")
_QUIET = 4.0
_CASES = (("4.3", "quorum"), ("3.10", "classic"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--delay", action="append", type=float, metavar="MS", help="added to each sync (default 50, 100, 200, 300)"
    )
    parser.add_argument("--undisturbed", type=int, default=10, metavar="N", help="runs without a fault (default 10)")
    add_seconds(parser, 20)


def measure(args: argparse.Namespace) -> Document:
    """Measure streams that wait for a sync with all delays, a stream that does not, and undisturbed runs."""
    delays = [delay / 1000 for delay in args.delay] if args.delay else list(DELAYS)
    rows: list[dict[str, Any]] = []
    quiet: list[dict[str, Any]] = []
    for broker, stream in _CASES:
        with start_lab(broker) as lab:
            rows += [_slowed(lab, stream, delay, args.seconds) for delay in delays]
            if broker == "4.3":
                rows += [_unmoved(lab, delay, args.seconds) for delay in delays[-1:]]
            quiet += [_undisturbed(lab, stream, max(_QUIET, args.seconds / 4)) for _ in range(args.undisturbed // 2)]
    return {"rate": RATE, "seconds": args.seconds, "rows": rows, "undisturbed": quiet}


def _slowed(lab: Lab, stream: str, delay: float, seconds: float) -> dict[str, Any]:
    """Measure a stream whose confirms wait for a sync, on a slow disk."""
    progress(f"RabbitMQ {lab.broker}, {stream}, {delay * 1000:.0f} ms added to each sync")
    with slow_disk(lab.processes[0].pid, delay), ProbeProcess(lab.nodes[0].amqp, settings(stream)) as probe:
        probe.run(seconds)
    outcome = probe.confirm(stream)
    return {"broker": lab.broker, "stream": stream, "injected": delay, **said(outcome, delay)}


def _unmoved(lab: Lab, delay: float, seconds: float) -> dict[str, Any]:
    """Measure the classic queue of 4.x, which confirms without a sync, together with a quorum queue, which syncs."""
    progress(f"RabbitMQ {lab.broker}, classic beside quorum, {delay * 1000:.0f} ms added to each sync")
    streams = confirm_settings(_CONTRAST, RATE)
    with slow_disk(lab.processes[0].pid, delay), ProbeProcess(lab.nodes[0].amqp, streams) as probe:
        probe.run(seconds)
    layers = {layer.name: layer for layer in decompose(probe.reported()) if layer.name in _LAYERS}
    conclusion = said(probe.confirm("classic"), None)
    persist = layers["persist"].seconds if "persist" in layers else None
    return {
        "broker": lab.broker,
        "stream": "classic",
        "injected": delay,
        "layers": [{"name": name, "seconds": each.seconds, "because": each.because} for name, each in layers.items()],
        "blames_persistence": conclusion["claims"] or (persist is not None and persist > CLAIM * delay),
        **conclusion,
    }


def _undisturbed(lab: Lab, stream: str, seconds: float) -> dict[str, Any]:
    progress(f"RabbitMQ {lab.broker}, {stream}, no fault")
    with ProbeProcess(lab.nodes[0].amqp, settings(stream)) as probe:
        probe.run(seconds)
    return {"broker": lab.broker, "stream": stream, **said(probe.confirm(stream), None)}


def settings(stream: str) -> Any:
    """Return settings of one stream at the rate of this benchmark."""
    return confirm_settings([stream], RATE)


def said(outcome: ProbeOutcome, injected: float | None) -> dict[str, Any]:
    """Return what the probe concludes, and its error relative to the injected delay."""
    batching = outcome.batching
    interval = None if batching is None else batching.interval
    off = None if interval is None or injected is None else interval / injected - 1
    return {
        "p50": outcome.confirm.p50,
        "kind": BatchingKind.UNKNOWN if batching is None else batching.kind,
        "estimate": interval,
        "off": off,
        "within": None if injected is None else off is not None and abs(off) <= CLAIM,
        "fsync": batching is not None and batching.fsync,
        "claims": batching is not None and batching.kind is BatchingKind.SYNC,
        "group": None if batching is None else batching.group,
        "confidence": 0.0 if batching is None else batching.confidence,
        "because": "" if batching is None else batching.because,
    }


def lines(document: Document) -> list[str]:
    """The table."""
    head = ("broker, stream", "injected", "p50 ms", "group", "estimate", "off", "15 %", "says fsync")
    rows = [
        (
            f"{row['broker']} {row['stream']}",
            f"{row['injected'] * 1000:.0f} ms",
            ms(row["p50"]),
            "-" if row["group"] is None else f"{row['group']:.0f}",
            f"{row['kind']}" if row["estimate"] is None else f"{row['estimate'] * 1000:.1f} ms",
            percent(row["off"]),
            {True: "within", False: "OUTSIDE", None: ""}[row["within"]],
            "yes" if row["fsync"] and row["claims"] else "no",
        )
        for row in document["rows"]
    ]
    quiet = document["undisturbed"]
    claims = [row for row in quiet if row["claims"]]
    unmoved = [row for row in document["rows"] if "layers" in row]
    return [
        f"{document['rate']:g}/s, {document['seconds']:g} s each; strace adds the time to every fsync and fdatasync",
        "",
        *table(head, rows),
        "",
        *(line for row in unmoved for line in _contrast(row)),
        f"no disk fault: {len(claims)} of {len(quiet)} runs claim a slow sync",
        *(line for row in claims for line in wrap(f"  {row['broker']} {row['stream']}: {row['because']}", "    ")),
    ]


def _contrast(row: dict[str, Any]) -> list[str]:
    """Return the lines about the layers of the queue that confirms without a sync."""
    verdict = "BLAMED" if row["blames_persistence"] else "not the cause"
    layers = (f"{each['name']} {ms(each['seconds'])} ms: {each['because']}" for each in row["layers"])
    return [
        *wrap(f"{row['broker']} classic beside quorum: persistence is {verdict}; {row['because']}", "  "),
        *(line for layer in layers for line in wrap(f"- {layer}", "  ")),
        "",
    ]


BENCH = Bench(
    name="slow_disk",
    shows="a slow disk, injected: the estimate of the sync time, and where it says fsync",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--seconds", "8", "--delay", "100", "--delay", "200", "--undisturbed", "4"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
