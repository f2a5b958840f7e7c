"""The exporter's own HTTP API over made-up brokers that go on living: for pictures of every page, without a broker.

Snapshots are made up, everything after them is real: window, diagnosis, documents, routes and server.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ackscope.clock import Instant, SystemClock
from ackscope.counters import MessageStats
from ackscope.records import ProbeOutcome
from ackscope.snapshot import Channel, Connection, Consumer, HealthCheck, Node, Overview, Part, Queue, Snapshot
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.engine import diagnose
from diagnosis.queue_age import QueueAges
from diagnosis.thresholds import Thresholds
from exporter.exposition.live.process import SupervisedProcess
from exporter.routes import RouteContext, make_routes
from exporter.runtime.state import StateStore
from exporter.triage.store import TriageStore
from exporter.web.server import HttpServer
from tests.dashboard import answers

GIB = 1024**3
NODES = ("rabbit@shop-1", "rabbit@shop-2", "rabbit@shop-3")
_APPS = ("invoices", "emails", "stock", "shipping", "search-index", "payments", "loyalty", "returns", "audit", "prices")
_VHOSTS, _DEAD = ("/", "marketing"), "dead-letters"
_HEALTHY, _OTHERS = 40, 6
"""Healthy queues of the first cluster, and of each further one."""
_PAST_SECONDS, _EVERY_SECONDS = 600.0, 5.0
_SICK_FOR = 420.0
"""Seconds before the start of the film at which what is sick fell ill."""
_RESTARTED = 200.0
"""Seconds before the start of the film at which the counters of one queue began again at 0: a gap in its rates."""


@dataclass(frozen=True, slots=True)
class ShopQueue:
    """One queue of the film.

    Attributes:
        ill: "" (healthy), stuck, lonely, loop, crashed, or unread (the broker tells no statistics).
        rate: messages published per second.
    """

    number: int
    name: str
    vhost: str
    kind: str
    rate: float
    ill: str = ""

    @property
    def peer(self) -> str:
        """The connection of its consumer."""
        return f"10.1.{self.number // 200}.{self.number % 200 + 10}:{50_000 + self.number} -> 10.1.0.1:5672"

    @property
    def node(self) -> str:
        """Where it lives."""
        return NODES[self.number % len(NODES)]


def shop_queues(sick: int, healthy: int) -> tuple[ShopQueue, ...]:
    """Sick and healthy queues; the last one has no statistics."""
    made = []
    for number in range(healthy + sick):
        app = _APPS[number % len(_APPS)]
        ill = ("stuck", "lonely", "loop", "crashed")[number % 4] if number < sick else ""
        name = f"{app}.{('created', 'changed', 'retry', 'archive')[number % 4]}.{number:03}"
        kind = "classic" if ill == "crashed" else "quorum"
        vhost = _VHOSTS[number % 5 == 0]
        rate = 3.0 + number * 7 % 23
        if number == healthy + sick - 1:
            name, ill = "metrics.sampled", "unread"
        made.append(ShopQueue(number, name, vhost, kind, rate, ill))
    return tuple(made)


def _counters(it: ShopQueue, t: float) -> tuple[int, int, MessageStats]:
    """Ready, unacked and counters of a queue, `t` seconds after the start of the film (before it: negative)."""
    alive = t + 86_400.0 if it.name != "stock.changed.042" or t < -_RESTARTED else t + _RESTARTED
    # Some more and some less every few minutes, so that curves are no straight lines.
    wave = 30 * it.rate * (1 + ((t / 90 + it.number) % 2 - 1) ** 2)
    published = int(it.rate * alive + wave)
    ill_for = max(0.0, t + _SICK_FOR)
    held = 1 + it.number % 4
    if it.ill == "stuck":
        acked, held = int(it.rate * (alive - ill_for)), 50 if ill_for else held
        return published - acked, held, _stats(published, acked + held, acked)
    if it.ill == "lonely":
        acked = int(it.rate * (alive - ill_for))
        return published - acked, 0, _stats(published, acked, acked)
    if it.ill == "loop":
        again, acked = int(90 * ill_for), int(it.rate * (alive - ill_for))
        published = int(it.rate * (alive - ill_for))
        return 2, 1, replace(_stats(published, acked + again, acked), redeliver=again)
    return it.number % 7, held, _stats(published, published, published - held)


def _stats(publish: int, deliver: int, ack: int) -> MessageStats:
    return MessageStats(publish=publish, deliver=deliver, deliver_get=deliver, ack=ack)


def snapshot(cluster: str, queues: Sequence[ShopQueue], t: float, at: Instant) -> Snapshot:
    """The snapshot of a cluster `t` seconds after the start of the film."""
    listed, consumers, channels, connections = [], [], [], []
    total = MessageStats(publish=0, deliver_get=0, ack=0, redeliver=0, confirm=0)
    for it in queues:
        ready, held, stats = _counters(it, t)
        running = it.ill != "crashed"
        mine = Queue(
            vhost=it.vhost,
            name=it.name,
            type=it.kind,
            state="running" if running else "crashed",
            node=it.node,
            durable=True,
            leader=it.node,
            members=NODES if it.kind == "quorum" else None,
            online=NODES if it.kind == "quorum" else None,
            messages=ready + held if running else None,
            messages_ready=ready if running else None,
            messages_unacked=held if running else None,
            consumers=0 if it.ill == "lonely" else 1,
            arguments={"x-queue-type": it.kind, "x-dead-letter-exchange": "dead"},
            stats=stats if running and it.ill != "unread" else MessageStats(),
        )
        listed.append(mine)
        total = replace(
            total,
            publish=(total.publish or 0) + (stats.publish or 0),
            confirm=(total.confirm or 0) + (stats.publish or 0),
            deliver_get=(total.deliver_get or 0) + (stats.deliver_get or 0),
            ack=(total.ack or 0) + (stats.ack or 0),
            redeliver=(total.redeliver or 0) + (stats.redeliver or 0),
        )
        if it.ill == "lonely" or not running:
            continue
        channel = f"{it.peer} (1)"
        prefetch = 1 if it.ill == "loop" else 50
        consumers.append(
            Consumer(
                tag=f"ctag-{it.number}",
                vhost=it.vhost,
                queue=it.name,
                channel_name=channel,
                connection_name=it.peer,
                user="shop",
                peer_host=it.peer.partition(":")[0],
                prefetch_count=prefetch,
                ack_required=True,
                active=True,
            )
        )
        channels.append(
            Channel(
                name=channel,
                connection_name=it.peer,
                vhost=it.vhost,
                state="running",
                confirm=False,
                transactional=False,
                consumer_count=1,
                messages_unacked=held,
                messages_unconfirmed=0,
                acks_uncommitted=0,
                prefetch_count=prefetch,
                stats=replace(stats, publish=None),
            )
        )
        connections.append(
            Connection(
                name=it.peer,
                vhost=it.vhost,
                state="running",
                client_name=f"{it.name.partition('.')[0]}-worker-{it.number}",
                peer_host=it.peer.partition(":")[0],
                channels=1,
                send_pend=0,
            )
        )
    listed += [_dead_letters(vhost, node) for vhost, node in zip(_VHOSTS, NODES, strict=False)]
    overview = Overview(
        cluster_name=f"rabbit@{cluster}",
        rabbitmq_version="4.3.6",
        statistics=True,
        rates_mode="basic",
        messages_ready=sum(it.messages_ready or 0 for it in listed),
        messages_unacked=sum(it.messages_unacked or 0 for it in listed),
        queues=len(listed),
        consumers=len(consumers),
        connections=len(connections),
        channels=len(channels),
        stats=total,
    )
    values: dict[str, Any] = {
        "overview": overview,
        "nodes": tuple(_node(name, number, t) for number, name in enumerate(NODES)),
        "health": (HealthCheck(name="alarms", ok=True),),
        "queues": tuple(listed),
        "consumers": tuple(consumers),
        "channels": tuple(channels),
        "connections": tuple(connections),
        "exchanges": tuple(
            Exchange(
                vhost=vhost, name=name, type="topic", durable=True, stats=MessageStats(publish_in=0, publish_out=0)
            )
            for vhost in _VHOSTS
            for name in ("shop", "dead")
        ),
        "bindings": Bindings(
            listed=(
                *(_bound(it.vhost, "shop", it.name, it.name.rpartition(".")[0]) for it in queues),
                *(_bound(vhost, "dead", _DEAD, "#") for vhost in _VHOSTS),
            )
        ),
    }
    parts = {name: Part(value=value, at=at, seconds=0.05) for name, value in values.items()}
    return Snapshot(cluster=cluster, taken=at, **parts)


def _bound(vhost: str, exchange: str, queue: str, key: str) -> Binding:
    return Binding(vhost=vhost, source=exchange, destination=queue, destination_type="queue", routing_key=key)


def _dead_letters(vhost: str, node: str) -> Queue:
    """The empty queue of dead letters of a virtual host."""
    return Queue(
        vhost=vhost,
        name=_DEAD,
        type="quorum",
        state="running",
        node=node,
        durable=True,
        leader=node,
        members=NODES,
        online=NODES,
        messages=0,
        messages_ready=0,
        messages_unacked=0,
        consumers=0,
        arguments={"x-queue-type": "quorum", "x-dead-letter-exchange": "dead"},
        stats=_stats(0, 0, 0),
    )


def _node(name: str, number: int, t: float) -> Node:
    return Node(
        name=name,
        running=True,
        rabbitmq_version="4.3.6",
        uptime_seconds=90_000.0 + t,
        mem_used=int((1.2 + 0.7 * number + t / 6000) * GIB),
        mem_limit=6 * GIB,
        mem_alarm=False,
        disk_free=(38 - 11 * number) * GIB,
        disk_free_limit=2 * GIB,
        disk_free_alarm=False,
        fd_used=180 + 40 * number,
        fd_total=32_768,
        sockets_used=90,
        sockets_total=29_000,
        proc_used=900 + 60 * number,
        proc_total=1_048_576,
        run_queue=number,
        processors=4,
    )


def _probes(sick: int) -> list[ProbeOutcome]:
    """All probes, healthy; with findings one of them doubts itself."""
    made = [replace(it, node=NODES[number % 3]) for number, it in enumerate(answers.all_probes())]
    if sick:
        made[1] = replace(made[1], doubtful="the probe's own loop was 120 ms late")
    return made


class LivingShop:
    """The state of some clusters; `feed` adds the present to it.

    Args:
        sick: cluster name -> number of its queues that are sick; None: it has never been polled.
    """

    def __init__(self, sick: dict[str, int | None]) -> None:
        self._clock = SystemClock()
        self._start = self._clock.now()
        self._sick = {name: number for name, number in sick.items() if number is not None}
        self._queues = {
            name: shop_queues(number, _OTHERS if place else _HEALTHY)
            for place, (name, number) in enumerate(self._sick.items())
        }
        self._ages = {name: QueueAges() for name in self._sick}
        self.state = StateStore(sick)
        steps = int(_PAST_SECONDS / _EVERY_SECONDS)
        for step in range(-steps, 1):
            back = step * _EVERY_SECONDS
            self._add(replace(self._start, wall=self._start.wall + back, mono=self._start.mono + back), step % 24 == 0)

    def feed(self) -> None:
        """Add a snapshot and a diagnosis of now."""
        self._add(self._clock.now(), judge=True)

    def _add(self, at: Instant, judge: bool) -> None:  # noqa: FBT001  of this class only
        for name, queues in self._queues.items():
            taken = snapshot(name, queues, at.mono - self._start.mono, at)
            known = self.state.put_snapshot(taken)
            self.state.put_queue_ages(name, self._ages[name].add(taken))
            if not judge or known is None:
                continue
            probes = [replace(it, at=at.wall) for it in _probes(self._sick[name])]
            self.state.put_outcomes(name, probes, at)
            self.state.put_verdict(diagnose(known.window, probes, at, Thresholds(), known.verdict), 0.05, at)

    def findings(self, cluster: str) -> int:
        """The number of its findings, without consequences."""
        verdict = self.state.clusters()[cluster].verdict
        return len(verdict.findings) if verdict else 0


@contextmanager
def living(sick: dict[str, int | None], folder: Path | None = None) -> Iterator[tuple[LivingShop, str]]:
    """Serve these clusters on loopback, with a new snapshot every five seconds; yields the shop and the URL.

    Args:
        sick: as of `LivingShop`.
        folder: for the file of what people say about findings; None: nothing can be said.
    """
    shop = LivingShop(sick)
    context = RouteContext(
        state=shop.state,
        exposition=SimpleNamespace(respond=None, answers_at_once=None),
        status=lambda: SupervisedProcess(up=True, restarts=0, bad_lines=0, age_seconds=1.0),
        probe_page=None,
        reload=None,
        clock=SystemClock(),
        triage=TriageStore(folder / "triage.json", sick) if folder else TriageStore(),
    )
    server = HttpServer(("127.0.0.1", 0), make_routes(context))
    over = threading.Event()

    def feed() -> None:
        pause = _EVERY_SECONDS
        while not over.wait(pause):
            began = time.monotonic()
            shop.feed()
            # A slow machine must still answer between two snapshots.
            pause = max(_EVERY_SECONDS, 3 * (time.monotonic() - began))

    thread = threading.Thread(target=feed, daemon=True)
    server.start()
    thread.start()
    try:
        yield shop, server.url
    finally:
        over.set()
        thread.join()
        server.stop()


def main() -> None:
    """Serve a shop until interrupted: `python -m tests.dashboard.living_shop`."""
    with living({"shop": 12}) as (shop, url):
        print(url, shop.findings("shop"), flush=True)
        time.sleep(3600)


if __name__ == "__main__":
    main()
