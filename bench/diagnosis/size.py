"""CPU time of one verdict on large clusters: all rules, a full window, with and without sick queues."""

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Consumer, HealthCheck, Node, Overview, Part, Queue, Snapshot
from ackscope.streams import StreamClients
from ackscope.topology import Binding, Bindings, Exchange
from ackscope.tuning import tune
from bench.bench import Bench, Document
from bench.exporter.goals import Goal
from bench.tables import median, ms, table
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window

GOAL_QUEUES, GOAL_SECONDS = 10_000, 1.0
_EVERY = 15.0
_NODE = "rabbit@one"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--queues", type=int, nargs="+", default=[1000, GOAL_QUEUES, 50_000], help="(1000 10000 50000)")
    parser.add_argument("--sick", type=float, default=0.02, help="share of queues with a stuck consumer (0.02)")
    parser.add_argument("--times", type=int, default=5, help="verdicts of which the middle is taken (5)")


def measure(args: argparse.Namespace) -> Document:
    """Diagnose a window of ten minutes for each size."""
    # As the exporter does at its start.
    tune()
    results = []
    for queues in args.queues:
        for sick in (0.0, args.sick):
            window = Window.empty("bench")
            for snapshot in film(queues, sick):
                window = window.add(snapshot)
            spent, findings = [], 0
            for _ in range(args.times):
                began = time.process_time()
                verdict = diagnose(window, (), window.snapshots[-1].taken, Thresholds())
                spent.append(time.process_time() - began)
                findings = len(verdict.findings)
            results.append({"queues": queues, "sick": sick, "seconds": median(spent), "findings": findings})
    worst = max((row["seconds"] or 0.0 for row in results if row["queues"] == GOAL_QUEUES), default=None)
    goal = Goal(f"processor seconds of a verdict on {GOAL_QUEUES} queues", worst, GOAL_SECONDS)
    return {"results": results, "goals": [goal.as_dict()]}


def film(queues: int, sick: float) -> Iterator[Snapshot]:
    """Yield snapshots of ten minutes of a busy cluster.

    Every queue has a consumer, and every tenth has traffic. A share of `sick` has a stuck consumer.
    """
    for number in range(41):
        yield _frame(queues, sick, number * _EVERY)


def _frame(queues: int, sick: float, seconds: float) -> Snapshot:
    at = Instant(wall=1_800_000_000.0 + seconds, mono=1000.0 + seconds)
    ill = int(queues * sick)

    def part(value: object) -> Any:
        return Part(value=value, at=at, seconds=0.1)

    names = [f"queue-{number:06d}" for number in range(queues)]
    listed = tuple(
        Binding(vhost="/", source="events", destination=name, destination_type="queue", routing_key=name)
        for name in names
    )
    parts = {
        "overview": Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", queues=queues),
        "nodes": (Node(name=_NODE, running=True, mem_used=200, mem_limit=1000),),
        "health": (HealthCheck(name="alarms", ok=True),),
        "queues": tuple(_queue(name, number, seconds, stuck=number < ill) for number, name in enumerate(names)),
        "channels": tuple(_channel(number, seconds, stuck=number < ill) for number in range(queues)),
        "consumers": tuple(
            Consumer(
                tag=f"c{number}",
                vhost="/",
                queue=name,
                channel_name=f"peer-{number} (1)",
                connection_name=f"peer-{number}",
                prefetch_count=10,
                ack_required=True,
                active=True,
            )
            for number, name in enumerate(names)
        ),
        "connections": tuple(
            Connection(name=f"peer-{number}", vhost="/", state="running", client_name="billing", channels=1)
            for number in range(queues)
        ),
        "exchanges": (Exchange(vhost="/", name="events", type="direct"),),
        "bindings": Bindings(counts={("/", "events"): queues}, listed=listed),
        "streams": StreamClients(consumers=(), publishers=()),
    }
    empty = Snapshot(cluster="bench", taken=at, hidden_queues=0)
    rest = {name: () for name in empty.parts if name not in parts}
    read: dict[str, Any] = {name: part(value) for name, value in {**rest, **parts}.items()}
    return replace(empty, **read)


def _counters(number: int, seconds: float, *, stuck: bool) -> MessageStats:
    done = 100 if stuck else int(100 + (10 * seconds if number % 10 == 0 else 0))
    return MessageStats(publish=done + (int(seconds) if stuck else 0), deliver=done, ack=done, deliver_get=done)


def _queue(name: str, number: int, seconds: float, *, stuck: bool) -> Queue:
    ready, held = (int(seconds), 10) if stuck else (0, 0)
    return Queue(
        vhost="/", name=name, type="classic" if number % 2 else "quorum", state="running", node=_NODE, durable=True,
        messages=ready + held, messages_ready=ready, messages_unacked=held, consumers=1,
        stats=_counters(number, seconds, stuck=stuck),
    )  # fmt: skip


def _channel(number: int, seconds: float, *, stuck: bool) -> Channel:
    return Channel(
        name=f"peer-{number} (1)", vhost="/", connection_name=f"peer-{number}", state="running", consumer_count=1,
        messages_unacked=10 if stuck else 0, messages_unconfirmed=0, acks_uncommitted=0, confirm=False,
        idle_since=1_800_000_000.0 if stuck else None, stats=_counters(number, seconds, stuck=stuck),
    )  # fmt: skip


def lines(document: Document) -> list[str]:
    """Return a table with one row per size."""
    rows = [
        (f"{row['queues']} queues", f"{row['sick']:.0%} sick", str(row["findings"]), ms(row["seconds"]))
        for row in document["results"]
    ]
    return [*table(("", "", "findings", "ms"), rows), "", *(Goal(**goal).line() for goal in document["goals"])]


BENCH = Bench(
    name="size",
    room="diagnosis",
    shows="processor time of one verdict, all rules over ten minutes of a busy cluster",
    measure=measure,
    lines=lines,
    add_arguments=add_arguments,
    short=("--queues", "1000", "10000", "--times", "3"),
)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
