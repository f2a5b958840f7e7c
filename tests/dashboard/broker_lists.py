"""Lists of a small broker, polled twice with 30 s in between, as in the exporter's window."""

from ackscope.clock import Instant, SystemClock
from ackscope.counters import MessageStats
from ackscope.snapshot import Channel, Connection, Consumer, Node, Part, Queue, Snapshot
from ackscope.topology import Binding, Bindings, Exchange
from diagnosis.window import Window

PEER = "10.1.4.17:51244 -> 10.1.0.1:5672"


def shop(name: str = "orders.invoices", vhost: str = "/", many: int = 0, cluster: str = "shop") -> Window:
    """A queue with a full consumer, one with a requeue loop, a healthy one, and a probe's own; `many` idle ones."""
    now = SystemClock().now()
    then = Instant(wall=now.wall - 30, mono=now.mono - 30)
    before = (
        _queue(name, vhost, 12_000, 50, publish=15_000, deliver_get=3_000, ack=2_950),
        _queue("retry.loop", "/", 2, 1, publish=3, deliver_get=1_000, redeliver=997),
        _queue("stock", "/", 0, 0, publish=500, deliver_get=500, ack=500),
    )
    after = (
        _queue(name, vhost, 12_418, 50, publish=15_418, deliver_get=3_000, ack=2_950),
        _queue("retry.loop", "/", 2, 1, publish=3, deliver_get=4_000, redeliver=3_997),
        _queue("stock", "/", 0, 0, publish=800, deliver_get=800, ack=800),
    )
    idle = tuple(_queue(f"idle.{number:05}", "/", 0, 0) for number in range(many))
    ours = (_queue("ackscope.probe.confirm.classic", "/", 1_000, 0, publish=9_000),)
    window = Window.empty(cluster).add(_snapshot(cluster, then, (*before, *idle, *ours), name, vhost))
    return window.add(_snapshot(cluster, now, (*after, *idle, *ours), name, vhost))


def _queue(name: str, vhost: str, ready: int, unacked: int, **stats: int) -> Queue:
    arguments = {"x-dead-letter-exchange": "dead", "x-dead-letter-routing-key": "gone"} if name == "stock" else {}
    return Queue(
        vhost=vhost,
        name=name,
        type="classic",
        state="running",
        node="rabbit@shop-1",
        messages_ready=ready,
        messages_unacked=unacked,
        consumers=1,
        arguments=arguments,
        stats=MessageStats(**stats),
    )


def _snapshot(cluster: str, at: Instant, queues: tuple[Queue, ...], name: str, vhost: str) -> Snapshot:
    channel = f"{PEER} (1)"
    full = Channel(name=channel, connection_name=PEER, consumer_count=1, messages_unacked=50)
    fed = Binding(vhost=vhost, source="shop", destination=name, destination_type="queue", routing_key="paid")
    behind = Binding(vhost=vhost, source="all", destination="shop", destination_type="exchange", routing_key="#")
    consumer = Consumer(
        tag="ctag-1",
        vhost=vhost,
        queue=name,
        channel_name=channel,
        connection_name=PEER,
        user="billing",
        peer_host="10.1.4.17",
        prefetch_count=50,
        ack_required=True,
        active=True,
    )
    careless = Consumer(tag="ctag-2", vhost="/", queue="stock", prefetch_count=0, ack_required=False)
    greedy = Consumer(tag="ctag-3", vhost="/", queue="retry.loop", prefetch_count=0, ack_required=True, active=False)
    worker = Connection(name=PEER, client_name="invoice-worker", peer_host="10.1.4.17")
    till = Connection(
        name="till-1",
        client_name="till",
        user="till",
        vhost="/",
        state="blocked",
        channels=1,
        connected_at=at.wall - 120,
    )
    published = MessageStats(publish=int(at.wall * 3))
    publishing = Channel(name="till-1 (1)", connection_name="till-1", consumer_count=0, stats=published)
    return Snapshot(
        cluster=cluster,
        taken=at,
        queues=Part(value=queues, at=at),
        consumers=Part(value=(careless, consumer, greedy), at=at),
        channels=Part(value=(full, publishing), at=at),
        connections=Part(value=(worker, till), at=at),
        nodes=Part(
            value=(
                Node(
                    name="rabbit@shop-1",
                    running=True,
                    rabbitmq_version="3.10.8",
                    uptime_seconds=90_000.0,
                    fd_used=80,
                    fd_total=1024,
                    sockets_used=900,
                    sockets_total=1000,
                    proc_used=500,
                    proc_total=1_048_576,
                    run_queue=9,
                    processors=2,
                ),
                Node(name="rabbit@shop-2", running=False, partitions=("rabbit@shop-1",)),
            ),
            at=at,
        ),
        exchanges=Part(value=(Exchange(vhost="/", name="shop"),), at=at),
        bindings=Part(value=Bindings(listed=(fed, behind)), at=at),
    )
