"""The queues of the last ten minutes, from the samples that the broker itself keeps.

The management plugin samples the lengths and counters of each queue every 5 s and keeps the samples for 10 min (`basic`
of `sample_retention_policies`; seen on 3.10.8, 4.0.5 and 4.3.6). With them, one look knows what the exporter would
know if it had run. A sample is the value at its time, at most 5 s late, like a poll.

Samples have neither consumers nor settings: the settings are those of now, and the consumers are unknown, unless the
queue has none now and its messages show that nobody took any since. The broker pads the samples of a new queue with
zeros, so a queue begins with its first event; one that has no samples of a time begins later.
Source: https://www.rabbitmq.com/docs/management#statistics-interval, https://www.rabbitmq.com/docs/http-api-reference
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from ackscope.clock import Instant
from ackscope.counters import MessageStats
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Queue, Snapshot
from exporter.broker.client import ManagementClient
from exporter.broker.clock_offset import ClockOffset
from exporter.broker.endpoints.queues import QueueKey
from exporter.broker.fetch import PAGE_SIZE, QUEUES_PATH
from exporter.broker.samples import Samples, samples_of
from exporter.broker.settings import ManagementSettings

MOST_QUEUES = PAGE_SIZE
"""One page. A queue costs the broker 2 ms and 14 kB (490 queues on 4.3.6: 0.9 s), so samples of more cost too much."""

PAST_WITHIN = 3.0
"""Seconds for reading the samples, at most: a look and the first poll wait for them."""

_SPANS = ((600, 60), (60, 5))
"""Seconds of history, and seconds between its samples; the finer one replaces the end of the other."""

_LENGTHS = {"messages": "messages", "messages_ready": "messages_ready", "messages_unacked": "messages_unacknowledged"}
"""Field of a queue -> name of the API."""
_COUNTERS = tuple(field.name for field in fields(MessageStats))

_APART = 2.5
"""Seconds between the last sample and the first reading: the counters of closer ones are the same."""
_STARTED = 30.0
"""Seconds after the start of a node for which its samples are not used: its queues recover one after the other."""

_PastQueues = tuple[Instant, dict[QueueKey, Queue]]
"""A moment, and the queues at it."""


def past_snapshots(settings: ManagementSettings, first: Snapshot, seconds: float = PAST_WITHIN) -> tuple[Snapshot, ...]:
    """Return snapshots of the time before the first one, with queues only, oldest first.

    Args:
        settings: how to reach the broker.
        first: the first snapshot that was read.
        seconds: time limit, if it is less than `PAST_WITHIN`.

    Returns:
        () if the broker keeps no statistics, does not answer in time, or has more than `MOST_QUEUES` queues.
    """
    overview, queues = first.overview.value, first.queues.value
    if overview is None or overview.statistics is False or not queues or len(queues) > MOST_QUEUES:
        return ()
    limited = settings.model_copy(update={"timeout": min(settings.timeout, seconds, PAST_WITHIN)})
    offset = ClockOffset()
    client = ManagementClient(limited, clock_offset=offset)
    try:
        found = [_samples(client, *span) for span in _SPANS]
    except BrokerError:
        # What it keeps is additional. The first snapshot says what cannot be read.
        return ()
    finally:
        client.close()
    return _snapshots(first, found, offset.seconds or 0.0)


def _samples(client: ManagementClient, age: int, step: int) -> dict[QueueKey, dict[str, Samples]]:
    """Return the samples of each queue by field or counter."""
    parameters = {"lengths_age": age, "lengths_incr": step, "msg_rates_age": age, "msg_rates_incr": step}
    body = client.get(QUEUES_PATH, {"page": 1, "page_size": PAGE_SIZE, **parameters})
    items = body.get("items") if isinstance(body, dict) else None
    found: dict[QueueKey, dict[str, Samples]] = {}
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("vhost"), str) and isinstance(item.get("name"), str):
            stats = item.get("message_stats")
            sources = [(field, item, name) for field, name in _LENGTHS.items()]
            if isinstance(stats, dict):
                sources += [(counter, stats, counter) for counter in _COUNTERS if counter in stats]
            series = {field: samples_of(source.get(f"{name}_details")) for field, source, name in sources}
            found[item["vhost"], item["name"]] = series
    return found


def _snapshots(first: Snapshot, found: list[dict[QueueKey, dict[str, Samples]]], ahead: float) -> tuple[Snapshot, ...]:
    at = first.queues.at
    # A queue without samples is new, or is not sampled.
    known = set.intersection(*({key for key, series in each.items() if _is_sampled(series)} for each in found))
    sampled = [queue for queue in first.queues.value or () if queue.key in known]
    if at is None or not sampled:
        return ()
    uptimes = [node.uptime_seconds for node in first.nodes.value or () if node.uptime_seconds is not None]
    begin = at.wall - min(uptimes, default=0.0) + _STARTED
    lists: list[_PastQueues] = []
    begun: set[QueueKey] = set()
    for (age, step), samples in zip(_SPANS, found, strict=True):
        end = at.wall - max((other for other, finer in _SPANS if finer < step), default=_APART)
        stamps = {
            queue.key: set.intersection(*(set(samples[queue.key][name]) for name in _LENGTHS)) for queue in sampled
        }
        for stamp in sorted(set().union(*stamps.values())):
            wall = stamp / 1000 - ahead
            there = {key for key, known in stamps.items() if stamp in known}
            # A list that lacks a queue would look as if the queue had been deleted for a while. One that begins later
            # was declared later.
            if begun <= there and max(begin, at.wall - age) <= wall <= end:
                begun = there
                past = {queue.key: _at(queue, samples[queue.key], stamp) for queue in sampled if queue.key in there}
                lists.append((Instant(wall=wall, mono=at.mono - (at.wall - wall)), past))
    return tuple(
        Snapshot(cluster=first.cluster, taken=when, queues=Part(value=tuple(queues.values()), at=when))
        for when, queues in _since_their_begin(sampled, _with_unattended(sampled, lists))
    )


def _since_their_begin(sampled: Sequence[Queue], lists: list[_PastQueues]) -> list[_PastQueues]:
    """Return the lists, oldest first, without queues before their first event: the broker pads samples with zeros.

    A queue that still has no event may be old, so it stays.
    """
    unused = {queue.key for queue in sampled if _is_used(queue)}
    found = []
    for when, queues in lists:
        unused -= {key for key in unused if key in queues and _is_used(queues[key])}
        found.append((when, {key: queue for key, queue in queues.items() if key not in unused}))
    return found


def _is_used(queue: Queue) -> bool:
    return bool(queue.messages) or any(queue.stats.all_counters())


def _is_sampled(series: Mapping[str, Samples]) -> bool:
    return all(series[name] for name in _LENGTHS)


def _at(queue: Queue, series: Mapping[str, Samples], stamp: int) -> Queue:
    """Return a queue at a sample, with the settings of now; figures that are not sampled are unknown."""
    counters = {name: values[stamp] for name, values in series.items() if name not in _LENGTHS and stamp in values}
    return replace(
        _without_figures(queue),
        messages=series["messages"][stamp],
        messages_ready=series["messages_ready"][stamp],
        messages_unacked=series["messages_unacked"][stamp],
        stats=MessageStats(**counters),
    )


def _without_figures(queue: Queue) -> Queue:
    """Return a queue with its settings only."""
    return Queue(
        vhost=queue.vhost,
        name=queue.name,
        type=queue.type,
        state=queue.state,
        node=queue.node,
        durable=queue.durable,
        auto_delete=queue.auto_delete,
        exclusive=queue.exclusive,
        arguments=queue.arguments,
        policy=queue.policy,
        operator_policy=queue.operator_policy,
        effective_policy=queue.effective_policy,
        leader=queue.leader,
        members=queue.members,
        online=queue.online,
        delivery_limit=queue.delivery_limit,
        owner=queue.owner,
        settings_known=queue.settings_known,
    )


def _with_unattended(sampled: Sequence[Queue], lists: list[_PastQueues]) -> list[_PastQueues]:
    """Return the lists, oldest first, in which queues that nobody took from until now have no consumers.

    A consumer with room takes a message that is ready. Streams are left out: consumers of their own protocol are not
    counted.
    """
    later = {queue.key: queue for queue in sampled if queue.consumers == 0 and queue.type != "stream"}
    for _, queues in reversed(lists):
        later = {
            key: replace(queues[key], consumers=0)
            for key, after in later.items()
            if key in queues and _is_unattended(queues[key], after)
        }
        queues.update(later)
    return lists


def _is_unattended(queue: Queue, later: Queue) -> bool:
    untouched = not queue.messages_unacked and queue.stats.deliver_get == later.stats.deliver_get
    return untouched and bool(queue.messages_ready)
