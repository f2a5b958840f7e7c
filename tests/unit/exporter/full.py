"""A handmade cluster with every field that a broker can report, so that every metric is made."""

from dataclasses import fields
from typing import Any

from ackscope.counters import MessageStats
from ackscope.snapshot import Alarm, Channel, Connection, Consumer, HealthCheck, Node, Overview, Part, Queue, Snapshot
from ackscope.topology import (
    AuthAttempts,
    Binding,
    Bindings,
    Certificate,
    Exchange,
    Feature,
    Limit,
    Link,
    NodeLink,
    NodeMemory,
    Policy,
    VHost,
)
from exporter.exposition.collectors.memory import PARTS
from tests.unit.exporter.made import NOW, part

ONE, TWO = "rabbit@one", "rabbit@two"
CHURN = {
    f"{what}_{how}": 7
    for what, how in (
        ("connection", "created"),
        ("connection", "closed"),
        ("channel", "created"),
        ("channel", "closed"),
        ("queue", "declared"),
        ("queue", "created"),
        ("queue", "deleted"),
    )
}
RATES = {"publish": 1.5, "deliver": 1.0, "deliver_no_ack": 0.5}
STATS = MessageStats(**{field.name: number for number, field in enumerate(fields(MessageStats), 10)})


def numbers(cls: Any, **known: Any) -> dict[str, Any]:
    """A small number for every numeric field of a kernel object that is not given."""
    found = dict(known)
    for number, field in enumerate(fields(cls), 1):
        if field.name not in found and field.type in (int | None, float | None, "int | None", "float | None"):
            found[field.name] = number
    return found


def full(cluster: str = "shop", version: str = "3.12.0", **parts: Part[Any]) -> Snapshot:
    """Return two nodes with an object of every kind, of a version that fills more fields than current ones."""
    overview = Overview(
        **numbers(
            Overview,
            cluster_name="rabbit@shop",
            rabbitmq_version=version,
            erlang_version="25.2",
            statistics=True,
            rates_mode="basic",
            node=ONE,
            stats=STATS,
            churn=CHURN,
            rates=RATES,
        )
    )
    node = Node(
        **numbers(
            Node,
            name=ONE,
            running=True,
            being_drained=False,
            mem_alarm=False,
            disk_free_alarm=False,
            partitions=(),
            rabbitmq_version=version,
            memory_strategy="rss",
            rates_mode="basic",
            churn=CHURN,
            links=(NodeLink(peer=TWO, recv_bytes=5, send_bytes=6),),
        )
    )
    queue = Queue(
        **numbers(
            Queue,
            vhost="/",
            name="orders",
            type="classic",
            state="running",
            node=ONE,
            leader=ONE,
            durable=True,
            auto_delete=False,
            exclusive=False,
            arguments={"x-max-length": 100, "x-max-length-bytes": 1000, "x-message-ttl": 500, "x-expires": 60000},
            policy="cap",
            members=(ONE, TWO),
            online=(ONE,),
            mirrors=(TWO,),
            synchronised_mirrors=(TWO,),
            garbage_collection={
                "min_heap_size": 233,
                "min_bin_vheap_size": 46422,
                "fullsweep_after": 65535,
                "minor_gcs": 4,
            },
            stats=STATS,
            rates=RATES,
            details_at=None,
        )
    )
    stream = Queue(
        **numbers(Queue, vhost="/", name="log", type="stream", state="down", segments=1, stats=STATS, details_at=NOW)
    )
    whole: dict[str, Part[Any]] = {
        "overview": part(overview),
        "nodes": part((node, Node(name=TWO, running=False))),
        "queues": part((queue, stream)),
        "channels": part(
            (
                Channel(
                    **numbers(
                        Channel,
                        name="c1",
                        node=ONE,
                        vhost="/",
                        user="shop",
                        connection_name="k1",
                        state="running",
                        confirm=True,
                        transactional=False,
                        consumer_count=1,
                        stats=STATS,
                    )
                ),
            )
        ),
        "consumers": part(
            (
                Consumer(
                    **numbers(
                        Consumer,
                        tag="t",
                        vhost="/",
                        queue="orders",
                        channel_name="c1",
                        connection_name="k1",
                        user="shop",
                        node=ONE,
                        ack_required=True,
                        exclusive=False,
                        active=True,
                        activity_status="up",
                        prefetch_count=10,
                    )
                ),
            )
        ),
        "connections": part(
            (
                Connection(
                    **numbers(
                        Connection,
                        name="k1",
                        node=ONE,
                        vhost="/",
                        user="shop",
                        state="running",
                        protocol="AMQP 0-9-1",
                        client_name="orders",
                        peer_host="10.0.0.1",
                    )
                ),
            )
        ),
        "health": part(
            (
                HealthCheck(name="alarms", ok=False, alarms=(Alarm(node=ONE, resource="memory"),)),
                HealthCheck(
                    name="certificate-expiration",
                    ok=False,
                    certificates=(
                        Certificate(node=ONE, protocol="amqps", port=5671, expires=2e9),
                        Certificate(node=ONE, protocol="amqps", port=5671, expires=1.9e9),
                    ),
                ),
                HealthCheck(name="virtual-hosts", ok=None),
            )
        ),
        "exchanges": part(
            (
                Exchange(vhost="/", name="", type="direct", durable=True, stats=STATS),
                Exchange(vhost="/", name="orders", type="topic", durable=True, policy="cap", stats=STATS),
                Exchange(vhost="/", name="nobody", type="fanout", durable=True),
            )
        ),
        "bindings": part(
            Bindings(
                counts={("/", ""): 2, ("/", "orders"): 1},
                listed=(Binding(vhost="/", source="orders", destination="orders", destination_type="queue"),),
            )
        ),
        "vhosts": part(
            (
                VHost(
                    **numbers(
                        VHost,
                        name="/",
                        default_queue_type="classic",
                        tracing=False,
                        protected_from_deletion=False,
                        cluster_state={ONE: "running", TWO: "stopped"},
                        stats=STATS,
                    )
                ),
            )
        ),
        "policies": part(
            (
                Policy(vhost="/", name="cap", pattern="^o", apply_to="all", priority=1, definition={"max-length": 5}),
                Policy(vhost="/", name="most", pattern=".*", apply_to="queues", priority=0, operator=True),
            )
        ),
        "limits": part(
            (
                Limit(scope="vhost", subject="/", name="max-queues", value=10),
                Limit(scope="vhost", subject="/", name="max-connections", value=-1),
                Limit(scope="user", subject="shop", name="max-channels", value=5),
            )
        ),
        "links": part(
            (
                Link(
                    **numbers(
                        Link,
                        kind="shovel",
                        name="away",
                        vhost="/",
                        node=ONE,
                        type="dynamic",
                        state="running",
                        source="amqp://here",
                        destination="amqp://there",
                    )
                ),
                Link(kind="shovel", name="old", type="static", state="terminated", reason="gone"),
                Link(
                    kind="federation",
                    name="hub",
                    vhost="/",
                    node=ONE,
                    type="exchange",
                    state="blocked",
                    upstream="hub",
                    local="orders",
                ),
            )
        ),
        "features": part(
            (
                Feature(name="khepri_db", state="disabled", stage="stable"),
                Feature(
                    name="global_qos", deprecated=True, state="permitted", stage="permitted_by_default", in_use=True
                ),
            )
        ),
        "auth": part((AuthAttempts(node=ONE, protocol="amqp091", total=5, succeeded=3, failed=2),)),
        "memory": part(
            (
                NodeMemory(
                    node=ONE,
                    parts={**dict.fromkeys(PARTS, 100), "queue_slave_procs": 7},
                    rss=1000,
                    erlang=900,
                    allocated=950,
                    strategy="rss",
                ),
            )
        ),
    }
    return Snapshot(cluster=cluster, taken=NOW, hidden_queues=0, **{**whole, **parts})
