"""What the broker reports about itself: one immutable `Snapshot` per poll.

Absent is not zero: a field that the broker did not send, or that this version only fills with zeros, is None.
Each part has the time of its last good reading, so that its age is known.
Names follow the management API. Counts are messages, sizes are bytes, and times are seconds, unless stated otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

from ackscope.amqp10 import AmqpSession
from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.past import ClusterPast
from ackscope.second_source import ExchangePublishes, MetricsReading, SettingsUnknown
from ackscope.streams import StreamClients
from ackscope.topology import (
    AuthAttempts,
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

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Generic[T]):
    """The last good reading of one family of objects, and the result of the latest attempt.

    Attributes:
        value: None before the first good reading.
        at: when the last good reading was complete.
        seconds: duration of that reading.
        error: why the latest attempt failed; None if it succeeded.
        gaps: field name -> number of objects with an unusable value in this field.
        every: current polling interval in seconds; None if no reading is planned.
        origins: field of the management API -> path and metric that its figure was read from instead.
    """

    value: T | None = None
    at: Instant | None = None
    seconds: float | None = None
    error: str | None = None
    gaps: Mapping[str, int] = field(default_factory=dict)
    every: float | None = None
    origins: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def age(self, now: Instant) -> float | None:
        """Seconds since the last good reading."""
        return None if self.at is None else now.since(self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """The cluster as a whole (`/api/overview`).

    Attributes:
        churn: connections, channels and queues opened and closed since the broker started, by the API's names.
        statistics: False if the broker collects no statistics (`disable_stats`). With `rates_mode: none` it still does.
        node: the node that responded.
        disk_reads, disk_writes: messages of classic queues since the broker started.
        rates: messages per second as computed by the broker, by the API's name of the counter.
        clock_offset: seconds by which the broker's clock is ahead of ours; 0 within 2 s.
        past: what the broker sampled of its last ten minutes; None in readings between those of the samples.
    """

    cluster_name: str | None = None
    rabbitmq_version: str | None = None
    erlang_version: str | None = None
    statistics: bool | None = None
    rates_mode: str | None = None
    connections: int | None = None
    channels: int | None = None
    exchanges: int | None = None
    queues: int | None = None
    consumers: int | None = None
    messages: int | None = None
    messages_ready: int | None = None
    messages_unacked: int | None = None
    node: str | None = None
    disk_reads: int | None = None
    disk_writes: int | None = None
    stats: MessageStats = field(default_factory=MessageStats)
    churn: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    clock_offset: float | None = None
    past: ClusterPast | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node (`/api/nodes`). A node that is down has only a name and `running=False`.

    Attributes:
        rabbitmq_version: version of this node; nodes may differ during an upgrade.
        memory_strategy: how it measures `mem_used`: rss, allocated, legacy.
        gc_num, gc_bytes_reclaimed, context_switches: counters of its Erlang VM since it started.
        io_*: counters since it started, 3.x only, without quorum queues and streams; `*_avg_time`: s per operation.
        churn: connections, channels and queues opened and closed at this node since it started, by the API's names.
        links: connections to the other running nodes.
        backlog: deleted objects that its statistics have not removed yet (`metrics_gc_queue_length`), total.
        plugins: names of the enabled plugins; None if not reported.
    """

    name: str
    running: bool | None = None
    being_drained: bool | None = None
    mem_used: int | None = None
    mem_limit: int | None = None
    mem_alarm: bool | None = None
    disk_free: int | None = None
    disk_free_limit: int | None = None
    disk_free_alarm: bool | None = None
    fd_used: int | None = None
    fd_total: int | None = None
    sockets_used: int | None = None
    sockets_total: int | None = None
    proc_used: int | None = None
    proc_total: int | None = None
    run_queue: int | None = None
    processors: int | None = None
    uptime_seconds: float | None = None
    net_ticktime: int | None = None
    partitions: tuple[str, ...] | None = None
    rabbitmq_version: str | None = None
    memory_strategy: str | None = None
    rates_mode: str | None = None
    gc_num: int | None = None
    gc_bytes_reclaimed: int | None = None
    context_switches: int | None = None
    io_read_count: int | None = None
    io_read_bytes: int | None = None
    io_read_avg_time: float | None = None
    io_write_count: int | None = None
    io_write_bytes: int | None = None
    io_write_avg_time: float | None = None
    io_sync_count: int | None = None
    io_sync_avg_time: float | None = None
    io_seek_count: int | None = None
    io_seek_avg_time: float | None = None
    io_reopen_count: int | None = None
    mnesia_ram_tx_count: int | None = None
    mnesia_disk_tx_count: int | None = None
    msg_store_read_count: int | None = None
    msg_store_write_count: int | None = None
    queue_index_read_count: int | None = None
    queue_index_write_count: int | None = None
    churn: Mapping[str, int] = field(default_factory=dict)
    links: tuple[NodeLink, ...] = ()
    backlog: int | None = None
    plugins: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue or stream (`/api/queues`).

    Attributes:
        type: classic, quorum, stream, or another name that the broker uses.
        consumer_capacity: 0..1; None for quorum queues and streams, where it is meaningless.
        effective_policy: the merged policy and operator policy definition.
        head_message_timestamp: seconds since 1970, set by publishers; classic queues only.
        consumer_utilisation: the older name of the capacity; None for the same queues.
        messages_paged_out: up to 4.2; classic queues only, like the `_ram` counts of ready and unacknowledged messages.
        messages_dlx: messages that are being dead-lettered with the at-least-once strategy; quorum queues only.
        idle_since: seconds since 1970; up to 3.12.
        garbage_collection: settings and counts of the queue's process, by the API's names; up to 3.12.
        mirrors, synchronised_mirrors: nodes with a copy of a mirrored queue; before 4.0 only.
        publishers: channels that publish to a quorum queue; from 4.0 on.
        segments: files of a stream; from 3.13 on.
        owner: connection that an exclusive queue belongs to; known only where queues are read one by one.
        rates: messages per second as computed by the broker, by the API's name of the counter.
        details_at: when everything except the totals (type, state, node, arguments, `messages*`) was read. None if it
            was read with the list, or never; in the latter case these fields are None.
        settings_known: False if only its figures are known, and neither arguments nor policies.
    """

    vhost: str
    name: str
    type: str | None = None
    state: str | None = None
    node: str | None = None
    durable: bool | None = None
    auto_delete: bool | None = None
    exclusive: bool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    effective_policy: Mapping[str, Any] = field(default_factory=dict)
    messages: int | None = None
    messages_ready: int | None = None
    messages_unacked: int | None = None
    message_bytes: int | None = None
    message_bytes_ready: int | None = None
    message_bytes_unacked: int | None = None
    consumers: int | None = None
    consumer_capacity: float | None = None
    memory: int | None = None
    head_message_timestamp: int | None = None
    leader: str | None = None
    members: tuple[str, ...] | None = None
    online: tuple[str, ...] | None = None
    delivery_limit: int | None = None
    operator_policy: str | None = None
    consumer_utilisation: float | None = None
    reductions: int | None = None
    messages_ram: int | None = None
    messages_ready_ram: int | None = None
    messages_unacked_ram: int | None = None
    messages_persistent: int | None = None
    messages_paged_out: int | None = None
    messages_dlx: int | None = None
    message_bytes_ram: int | None = None
    message_bytes_persistent: int | None = None
    message_bytes_paged_out: int | None = None
    message_bytes_dlx: int | None = None
    idle_since: float | None = None
    garbage_collection: Mapping[str, int] = field(default_factory=dict)
    mirrors: tuple[str, ...] | None = None
    synchronised_mirrors: tuple[str, ...] | None = None
    publishers: int | None = None
    segments: int | None = None
    owner: str | None = None
    rates: Mapping[str, float] = field(default_factory=dict)
    stats: MessageStats = field(default_factory=MessageStats)
    details_at: Instant | None = None
    settings_known: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """The identity of a queue: virtual host and name."""
        return (self.vhost, self.name)

    def setting(self, name: str) -> Any:
        """An effective queue setting by its policy name, such as `max-length`; None if it is not set.

        If both arguments and policy set it, the lower number applies; for other values, the argument.
        Raises `SettingsUnknown` if neither arguments nor policies of this queue are known.
        Source: https://www.rabbitmq.com/docs/parameters#policies
        """
        if not self.settings_known:
            raise SettingsUnknown(name)
        argument = self.arguments.get(f"x-{name}") if self.arguments else None
        policy = self.effective_policy.get(name) if self.effective_policy else None
        if argument is None:
            return policy
        return min(argument, policy) if isinstance(argument, int) and isinstance(policy, int) else argument


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """One channel (`/api/channels`).

    Attributes:
        name: the broker's name, `peer:port -> host:port (number)`.
        prefetch_count: the last `basic.qos`; the prefetch of a consumer is in `Consumer.prefetch_count`.
        idle_since: seconds since 1970; None while busy.
        reductions: work of its Erlang process since it was opened, in reductions.
        pending_raft_commands: commands to quorum queues without a response yet.
    """

    name: str
    node: str | None = None
    vhost: str | None = None
    user: str | None = None
    number: int | None = None
    connection_name: str | None = None
    state: str | None = None
    confirm: bool | None = None
    transactional: bool | None = None
    consumer_count: int | None = None
    prefetch_count: int | None = None
    global_prefetch_count: int | None = None
    messages_unacked: int | None = None
    messages_unconfirmed: int | None = None
    messages_uncommitted: int | None = None
    acks_uncommitted: int | None = None
    idle_since: float | None = None
    reductions: int | None = None
    pending_raft_commands: int | None = None
    stats: MessageStats = field(default_factory=MessageStats)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """One consumer (`/api/consumers`), joined to its queue, channel and connection by name.

    Attributes:
        ack_required: False means automatic acknowledgement.
        consumer_timeout_ms: how long a delivery may stay unacknowledged; None if this version does not report it.
        priority: its argument x-priority; None if it set none, which is as good as 0.
        filtered: it asked a stream for the messages of a filter only.
        stream_offset: its argument x-stream-offset; None if it set none, which is as good as `next`.
        session_number: the AMQP 1.0 session that it belongs to, within its connection. None for other protocols, and if
            the broker does not report sessions. The broker names no connection for such a consumer: that, its user, its
            node and its peer are then those of its session. It has no prefetch.
        link_name, credit: of its AMQP 1.0 link. Credit is how many more messages it asked for.
        unsettled: messages that were delivered on its link and not settled; None if its session has other links too.
        subscription: its number within its connection, if it uses the stream protocol and the broker lists it. It then
            has no prefetch, and `credit` is how many more chunks of messages it asked for.
        offset_lag: messages of the stream from its offset to the end; None if unknown, and for other protocols.
    """

    tag: str
    vhost: str
    queue: str
    channel_name: str | None = None
    connection_name: str | None = None
    user: str | None = None
    node: str | None = None
    peer_host: str | None = None
    peer_port: int | None = None
    prefetch_count: int | None = None
    ack_required: bool | None = None
    exclusive: bool | None = None
    active: bool | None = None
    activity_status: str | None = None
    consumer_timeout_ms: int | None = None
    priority: int | None = None
    filtered: bool | None = None
    stream_offset: str | int | None = None
    session_number: int | None = None
    link_name: str | None = None
    credit: int | None = None
    unsettled: int | None = None
    subscription: int | None = None
    offset_lag: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLists:
    """Channels and consumers by the Erlang process of the channel, where the broker lists no clients.

    Attributes:
        channels: named `<0.913.0> rabbit@host`. Their connection, user and client are not known.
        consumers: of the queues all of whose consumers follow from the channels. Their tags are not known: instead they
            have their number within the queue.
        used: channel -> names of the queues and exchanges that it used.
    """

    channels: tuple[Channel, ...] = ()
    consumers: tuple[Consumer, ...] = ()
    used: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One connection (`/api/connections`).

    Attributes:
        client_name: the name that the application set: the `connection_name` client property, else the AMQP 1.0
            container id or the MQTT client id, unless a library generated that.
        container_id, client_id: of AMQP 1.0, and of MQTT, only.
        state: running, blocking, blocked, flow, ...
        heartbeat: seconds; 0 is off.
        recv_oct, send_oct: bytes; recv_cnt, send_cnt: packets; send_pend: unsent bytes (`inet:getstat`).
        quiet_since: the earliest reading from which on nothing was received from it, as far as that was followed; None
            if something was received since the previous reading, or if nobody followed it.
    """

    name: str
    node: str | None = None
    vhost: str | None = None
    user: str | None = None
    state: str | None = None
    protocol: str | None = None
    client_name: str | None = None
    client_product: str | None = None
    container_id: str | None = None
    client_id: str | None = None
    peer_host: str | None = None
    peer_port: int | None = None
    channels: int | None = None
    heartbeat: int | None = None
    connected_at: float | None = None
    recv_oct: int | None = None
    send_oct: int | None = None
    send_pend: int | None = None
    recv_cnt: int | None = None
    send_cnt: int | None = None
    reductions: int | None = None
    channel_max: int | None = None
    tls: bool | None = None
    auth_mechanism: str | None = None
    quiet_since: Instant | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """A resource alarm in force: publishers of the whole cluster are blocked."""

    node: str
    resource: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """The response of one `/api/health/checks/...` of this version.

    Attributes:
        ok: None if the check could not be requested.
        reason: the broker's text if the check fails.
        age: age of a cached response at the time of this reading, seconds; None if it is not cached.
    """

    name: str
    ok: bool | None
    reason: str | None = None
    age: float | None = None
    alarms: tuple[Alarm, ...] = ()
    certificates: tuple[Certificate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that one cluster reported, at one moment.

    Attributes:
        prometheus: how the Prometheus endpoints of the nodes were read; empty if they are not.
        exchange_publishes: which channel publishes to which exchange, read from them on suspicion only.
        processes: channels and consumers by Erlang process, read from them where the broker lists no clients.
        hidden_queues: queues that the overview counts and the list omits, for lack of permissions; None if unknown.
    """

    cluster: str
    taken: Instant
    overview: Part[Overview] = field(default_factory=Part)
    nodes: Part[tuple[Node, ...]] = field(default_factory=Part)
    queues: Part[tuple[Queue, ...]] = field(default_factory=Part)
    channels: Part[tuple[Channel, ...]] = field(default_factory=Part)
    consumers: Part[tuple[Consumer, ...]] = field(default_factory=Part)
    connections: Part[tuple[Connection, ...]] = field(default_factory=Part)
    sessions: Part[tuple[AmqpSession, ...]] = field(default_factory=Part)
    streams: Part[StreamClients] = field(default_factory=Part)
    health: Part[tuple[HealthCheck, ...]] = field(default_factory=Part)
    exchanges: Part[tuple[Exchange, ...]] = field(default_factory=Part)
    bindings: Part[Bindings] = field(default_factory=Part)
    vhosts: Part[tuple[VHost, ...]] = field(default_factory=Part)
    policies: Part[tuple[Policy, ...]] = field(default_factory=Part)
    limits: Part[tuple[Limit, ...]] = field(default_factory=Part)
    links: Part[tuple[Link, ...]] = field(default_factory=Part)
    features: Part[tuple[Feature, ...]] = field(default_factory=Part)
    auth: Part[tuple[AuthAttempts, ...]] = field(default_factory=Part)
    memory: Part[tuple[NodeMemory, ...]] = field(default_factory=Part)
    prometheus: Part[MetricsReading] = field(default_factory=Part)
    exchange_publishes: Part[ExchangePublishes] = field(default_factory=Part)
    processes: Part[ProcessLists] = field(default_factory=Part)
    hidden_queues: int | None = None

    @property
    def parts(self) -> dict[str, Part[Any]]:
        """Every part by its name, in a fixed order."""
        return {name: getattr(self, name) for name in FAMILIES}

    @property
    def broker(self) -> str | None:
        """The full version of RabbitMQ, as it reports it; None while unknown."""
        return self.overview.value.rabbitmq_version if self.overview.value else None

    @property
    def version(self) -> tuple[int, int] | None:
        """Major and minor version of RabbitMQ; None while unknown."""
        return version_of(self.broker)


_MOST_DIGITS = 10
"""Python refuses to convert thousands of digits; no version has ten."""


def version_of(text: object) -> tuple[int, int] | None:
    """Parse major and minor from a version such as "4.3.6"; None for anything else."""
    parts = text.split(".") if isinstance(text, str) else []
    # Not `isdigit`: it accepts digits such as a superscript 2, and `int` refuses them.
    if len(parts) < 2 or not all(part.isdecimal() and len(part) < _MOST_DIGITS for part in parts[:2]):
        return None
    return (int(parts[0]), int(parts[1]))


_NO_FAMILY = {"cluster", "taken", "prometheus", "exchange_publishes", "processes", "hidden_queues"}

FAMILIES = tuple(each.name for each in fields(Snapshot) if each.name not in _NO_FAMILY)
"""The parts that are read from the management API, in a fixed order."""
