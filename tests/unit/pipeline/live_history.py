"""A cluster as the exporter sees it live: snapshots, their diagnosis, and what lands of both."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.findings import DiagnosisResult
from ackscope.snapshot import Alarm, Channel, Consumer, HealthCheck, Node, Overview, Part, Queue, Snapshot
from ackscope.tables import LANDING, Table
from ackscope.tables.arrow import arrow_schema
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.landing.blocks import join
from exporter.landing.samples import ClusterSamples
from exporter.landing.settings import LandingSettings

START = 1_772_323_200
"""2026-03-01 00:00 UTC."""

EVERY = 5
"""Seconds between polls."""

NODES_EVERY = 15
"""Seconds between readings of nodes: as often as they land."""

NODES = ("rabbit@one", "rabbit@two", "rabbit@three")


@dataclass(slots=True)
class _Flow:
    """One queue with a consumer. Messages per second come and are taken as `rates` says."""

    name: str
    ready: int = 0
    published: int = 0
    delivered: int = 0
    acked: int = 0
    redelivered: int = 0
    unacked: int = 0
    consumers: int = 1


@dataclass(slots=True)
class LiveHistory:
    """What happened and what landed.

    Attributes:
        verdicts: time and result of every diagnosis.
        landed: landing rows by table.
    """

    verdicts: list[tuple[float, DiagnosisResult]] = field(default_factory=list)
    landed: dict[Table, pa.Table] = field(default_factory=dict)


def live(minutes: int, thresholds: Thresholds | None = None) -> LiveHistory:
    """Diagnose a cluster live, and land it. With faults of each kind, one after the other; see `_step`."""
    history, window, limits = LiveHistory(), Window.empty("shop"), thresholds or Thresholds()
    samples = ClusterSamples("shop", LandingSettings(), limits.own_prefixes)
    blocks: dict[Table, list] = {table: [] for table in LANDING.values()}
    before = None
    for snapshot in _snapshots(minutes):
        window = window.add(snapshot)
        before = diagnose(window, (), snapshot.taken, limits, before)
        history.verdicts.append((snapshot.taken.wall, before))
        for _, take in samples.steps(snapshot, window.latest or snapshot, before, snapshot.taken):
            for block in take().blocks:
                blocks[block.key.table].append(block)
    history.landed = {
        table: join(found) if found else arrow_schema(table).empty_table() for table, found in blocks.items()
    }
    return history


def _snapshots(minutes: int) -> Iterator[Snapshot]:
    flows = [_Flow("orders.new"), _Flow("orders.paid"), _Flow("mail.out"), _Flow("audit")]
    nodes: Part[tuple[Node, ...]] = Part()
    for second in range(0, minutes * 60, EVERY):
        # Reads end at different moments of a round.
        for flow in flows:
            _step(flow, second)
        if second % NODES_EVERY == 0:
            nodes = Part(value=tuple(_node(name, second) for name in NODES), at=_at(second, 0.125), seconds=0.1)
        yield Snapshot(
            cluster="shop",
            taken=_at(second, 0.5),
            overview=Part(value=Overview(), at=_at(second, 0.0625), seconds=0.1),
            nodes=nodes,
            # Not recorded: the live diagnosis knows of alarms from here, the replay from the nodes.
            health=Part(value=(_alarms(second),), at=_at(second // NODES_EVERY * NODES_EVERY, 0.125), seconds=0.1),
            queues=Part(value=tuple(map(_queue, flows)), at=_at(second, 0.25), seconds=0.1),
            channels=Part(
                value=tuple(_channel(it) for it in flows if it.consumers), at=_at(second, 0.375), seconds=0.1
            ),
            consumers=Part(
                value=tuple(_consumer(it) for it in flows if it.consumers), at=_at(second, 0.5), seconds=0.1
            ),
        )


def _step(flow: _Flow, second: int) -> None:
    """Move one queue on: one fault after the other, each on a queue of its own."""
    minute = second / 60
    come, taken = 50, 50 + min(flow.ready, 100)
    flow.consumers, flow.unacked = 1, 5
    match flow.name:
        case "orders.new" if 12 <= minute < 22 or 40 <= minute < 41:
            # Its consumer is gone; later, for a deployment.
            flow.consumers = taken = flow.unacked = 0
        case "orders.paid" if 25 <= minute < 34:
            # Its consumer holds its prefetch and acknowledges nothing.
            taken, flow.unacked = 0, 20
        case "mail.out" if 36 <= minute < 44:
            # Publishers send three times as much; it processes what it always does.
            come, taken = 150, 50
        case "mail.out" if 46 <= minute < 49:
            flow.redelivered += 40 * EVERY
        case _:
            pass
    taken = min(taken * EVERY, come * EVERY + flow.ready)
    flow.published += come * EVERY
    flow.delivered += taken
    flow.acked += taken
    flow.ready += come * EVERY - taken


def _queue(flow: _Flow) -> Queue:
    return Queue(
        vhost="/",
        name=flow.name,
        type="classic",
        messages=flow.ready + flow.unacked,
        messages_ready=flow.ready,
        messages_unacked=flow.unacked,
        consumers=flow.consumers,
        stats=_stats(flow),
    )


def _stats(flow: _Flow) -> MessageStats:
    return MessageStats(
        publish=flow.published,
        deliver_get=flow.delivered + flow.redelivered,
        # Only the sum of all deliveries lands; all of these are to consumers.
        deliver=flow.delivered + flow.redelivered,
        ack=flow.acked,
        redeliver=flow.redelivered,
    )


def _channel(flow: _Flow) -> Channel:
    stats = _stats(flow)
    return Channel(
        name=f"client-{flow.name} (1)",
        connection_name=f"client-{flow.name}",
        vhost="/",
        user="shop",
        node=NODES[0],
        state="running",
        prefetch_count=20,
        consumer_count=1,
        messages_unacked=flow.unacked,
        messages_unconfirmed=0,
        stats=MessageStats(
            deliver_get=stats.deliver_get, deliver=stats.deliver, ack=stats.ack, redeliver=stats.redeliver
        ),
    )


def _consumer(flow: _Flow) -> Consumer:
    return Consumer(
        vhost="/",
        queue=flow.name,
        tag="ctag",
        channel_name=f"client-{flow.name} (1)",
        connection_name=f"client-{flow.name}",
        user="shop",
        node=NODES[0],
        prefetch_count=20,
        ack_required=True,
        active=True,
        activity_status="up",
    )


def _alarms(second: int) -> HealthCheck:
    full = _is_full(second // NODES_EVERY * NODES_EVERY)
    return HealthCheck(name="alarms", ok=not full, alarms=(Alarm(node=NODES[1], resource="memory"),) if full else ())


def _is_full(second: int) -> bool:
    return 15 <= second / 60 < 18


def _node(name: str, second: int) -> Node:
    if name == NODES[2] and 5 <= second / 60 < 8:
        return Node(name=name, running=False)
    full = name == NODES[1] and _is_full(second)
    return Node(
        name=name,
        running=True,
        being_drained=False,
        mem_used=900_000_000 if full else 400_000_000,
        mem_limit=800_000_000,
        mem_alarm=full,
        disk_free=50_000_000_000,
        disk_free_limit=1_000_000_000,
        disk_free_alarm=False,
        fd_used=100,
        fd_total=1000,
        sockets_used=50,
        sockets_total=900,
        proc_used=1000,
        proc_total=1_000_000,
        run_queue=1,
        partitions=(),
        uptime_seconds=float(100_000 + second),
    )


def _at(second: int, later: float) -> Instant:
    seconds = START + second + later
    return Instant(wall=seconds, mono=seconds)
