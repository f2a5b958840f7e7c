"""The kinds of objects subject to cardinality limits: their keys, sums and rankings."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ackscope.snapshot import Channel, Connection, Consumer, Queue, Snapshot
from ackscope.topology import Exchange, Feature, Limit, Link, Policy, VHost

T = TypeVar("T")
Group = tuple[str, ...]
Weight = Callable[[T], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectKind(Generic[T]):
    """One kind of object.

    Attributes:
        key: identifies an object.
        gauges: paths of gauges that can be summed over objects.
        counters: paths of counters.
        weights: snapshot -> ranking functions; a large value makes an object important.
        rising: groups of counters; each group ranks objects by their increase since the previous list.
        change_gauge: path of a gauge whose change, up or down, ranks objects too; "" for none. On a large broker totals
            change before the counters are read again.
        group: group of an object: its type and further parts; see `GroupSums`.
        has_details: whether the object reports more than totals.
        name: text that patterns are matched against; None if there are no patterns.
    """

    key: Callable[[T], Hashable]
    gauges: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    weights: Callable[[Snapshot], tuple[Weight[T], ...]]
    rising: tuple[tuple[str, ...], ...] = ()
    change_gauge: str = ""
    group: Callable[[T], Group] = lambda _: ("",)
    has_details: Callable[[T], bool] = lambda _: True
    name: Callable[[T], str] | None = None


def stats(*names: str) -> tuple[str, ...]:
    """Return the paths of message counters."""
    return tuple(f"stats.{name}" for name in names)


def place(queue: Queue) -> str:
    """Return the node of a queue or of its leader; "" if there is none or it is unknown."""
    return queue.leader or ("" if queue.type == "quorum" else queue.node or "")


def replicas(queue: Queue) -> str:
    """Return the state of the replicas of a queue; "" if it has none or the state is unknown.

    `leaderless` and `minority` mean that the queue is unavailable. With `minority` half or more replicas are offline,
    and the broker may still name the previous leader. `partial`: some are offline. `whole`: all are online.
    """
    if queue.members is None:
        return ""
    if queue.type == "quorum" and not queue.leader:
        return "leaderless"
    if queue.state == "minority":
        return "minority"
    if queue.online is None:
        return ""
    if 2 * len(queue.online) <= len(queue.members):
        return "minority"
    return "whole" if len(queue.online) >= len(queue.members) else "partial"


_CONSUMED = ("deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "ack", "redeliver")

QUEUES: ObjectKind[Queue] = ObjectKind(
    key=lambda it: it.key,
    gauges=(
        "messages",
        "messages_ready",
        "messages_unacked",
        "consumers",
        "memory",
        "message_bytes",
        "message_bytes_ready",
        "message_bytes_unacked",
        "messages_ram",
        "message_bytes_ram",
        "messages_ready_ram",
        "messages_unacked_ram",
        "messages_persistent",
        "message_bytes_persistent",
        "messages_paged_out",
        "message_bytes_paged_out",
        "messages_dlx",
        "publishers",
        "segments",
    ),
    counters=(*stats("publish", *_CONSUMED), "reductions"),
    weights=lambda _: (lambda it: it.messages_ready, lambda it: it.messages_unacked, lambda it: it.messages),
    rising=(stats("redeliver"), stats("publish", "ack", "deliver", "deliver_no_ack")),
    change_gauge="messages",
    group=lambda it: (it.type or "unknown", it.vhost, it.state or "unknown", place(it), replicas(it)),
    has_details=lambda it: it.consumers is not None or it.details_at is not None,
    name=lambda it: f"{it.vhost}/{it.name}",
)
CHANNELS: ObjectKind[Channel] = ObjectKind(
    key=lambda it: it.name,
    gauges=(
        "consumer_count",
        "messages_unacked",
        "messages_unconfirmed",
        "messages_uncommitted",
        "acks_uncommitted",
        "pending_raft_commands",
    ),
    counters=(*stats("publish", "confirm", "return_unroutable", "drop_unroutable", *_CONSUMED), "reductions"),
    weights=lambda _: (lambda it: it.messages_unacked, lambda it: it.messages_unconfirmed),
    rising=(stats("redeliver"), stats("publish", "ack", "deliver", "deliver_no_ack")),
)


def _held(snapshot: Snapshot) -> tuple[Weight[Consumer], ...]:
    channels = {it.name: it.messages_unacked for it in snapshot.channels.value or ()}
    queues = {it.key: it.messages_ready for it in snapshot.queues.value or ()}
    return (
        lambda it: channels.get(it.channel_name or ""),
        lambda it: queues.get((it.vhost, it.queue)),
    )


CONSUMERS: ObjectKind[Consumer] = ObjectKind(
    key=lambda it: (it.vhost, it.queue, it.channel_name, it.tag),
    weights=_held,
    name=lambda it: f"{it.vhost}/{it.queue}",
)
CONNECTIONS: ObjectKind[Connection] = ObjectKind(
    key=lambda it: it.name,
    gauges=("channels", "send_pend"),
    counters=("recv_oct", "send_oct", "recv_cnt", "send_cnt", "reductions"),
    weights=lambda _: (lambda it: it.state in ("blocked", "blocking"), lambda it: it.send_pend, lambda it: it.channels),
    rising=(("recv_oct", "send_oct"),),
)
EXCHANGES: ObjectKind[Exchange] = ObjectKind(
    key=lambda it: it.key,
    counters=stats("publish_in", "publish_out"),
    weights=lambda _: (lambda it: it.stats.publish_in,),
    rising=(stats("publish_in", "publish_out"),),
)
LINKS: ObjectKind[Link] = ObjectKind(
    key=lambda it: (it.kind, it.vhost, it.name, it.upstream, it.local, it.node),
    weights=lambda _: (lambda it: it.state != "running",),
)
POLICIES: ObjectKind[Policy] = ObjectKind(
    key=lambda it: (it.vhost, it.name, it.operator),
    weights=lambda _: (lambda it: it.priority,),
)
LIMITS: ObjectKind[Limit] = ObjectKind(
    key=lambda it: (it.scope, it.subject, it.name),
    # Smaller limits are closer to being reached; negative means unlimited.
    weights=lambda _: (lambda it: 0 if it.value < 0 else 1 / (1 + it.value),),
)
FEATURES: ObjectKind[Feature] = ObjectKind(
    key=lambda it: (it.deprecated, it.name),
    weights=lambda _: (lambda it: it.in_use, lambda it: it.state == "disabled"),
)
VHOSTS: ObjectKind[VHost] = ObjectKind(
    key=lambda it: it.name,
    weights=lambda _: (lambda it: it.messages,),
)
