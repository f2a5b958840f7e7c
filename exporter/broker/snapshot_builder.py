"""Builds snapshots, and reads a whole snapshot at once for one-shot commands."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.failures import FailurePhrase
from ackscope.second_source import ExchangePublishes, MetricsReading
from ackscope.snapshot import Part, Snapshot
from exporter.broker.amqp_sessions import with_sessions
from exporter.broker.credentials import Credentials
from exporter.broker.families import FAMILIES, FAST, METRICS, POLLED, PUBLISHES, FamilyReading, T
from exporter.broker.prometheus.merge import PROCESSES
from exporter.broker.prometheus.reader import MetricsReader
from exporter.broker.publish_suspicion import suspicious_channels
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from exporter.broker.stream_clients import with_streams
from exporter.broker.visibility import hidden_queues, without_misleading_lists

_SUSPECTS_TIME_SHARE = 0.2
"""Share of the deadline for reading single queues of a large broker."""


def read_once(
    cluster: str,
    settings: ManagementSettings,
    clock: Clock,
    deadline_seconds: float,
    families: Iterable[str] = FAMILIES,
    credentials: Credentials | None = None,
    metrics: MetricsReader | None = None,
) -> Snapshot:
    """Read families once, concurrently. A family that failed or took too long becomes a part with an error.

    The `FAST` families are read first. The others start when these are done or take long. Which channel publishes to
    which exchange is asked only if the channels give a reason. On a large broker all queues have totals, but only the
    most suspicious ones have statistics.

    Args:
        cluster: name for the snapshot.
        settings: how to reach it.
        clock: timestamps of readings and of the snapshot.
        deadline_seconds: time limit in seconds.
        families: families to read; the parts of others stay empty.
        credentials: shared with other readers; by default its own.
        metrics: reads the Prometheus endpoints; see `BrokerReader`.

    Raises:
        UsageError: invalid address.
        ConfigError: a file of the settings cannot be read.
    """
    limited = settings.model_copy(update={"timeout": min(settings.timeout, deadline_seconds)})
    reader = BrokerReader(limited, clock, credentials=credentials, metrics=metrics)
    selected = {*families, METRICS, PUBLISHES}.intersection(reader.families)
    ordered = [family for family in POLLED if family in selected]
    results: SimpleQueue[tuple[str, Part[Any]]] = SimpleQueue()
    deadline = monotonic() + deadline_seconds
    late = f"{FailurePhrase.NO_ANSWER} {deadline_seconds:g} s"
    parts: dict[str, Part[Any]] = {family: Part(error=late) for family in ordered}
    pending = set(ordered)

    def start(names: list[str]) -> None:
        for family in names:
            # Daemon threads: one that hangs beyond the deadline ends with its own timeout and does not delay exit.
            arguments = (reader, family, deadline_seconds, results)
            threading.Thread(target=_read_part, args=arguments, name=f"read-{family}", daemon=True).start()

    def collect(until: float, awaited: set[str]) -> None:
        try:
            while awaited & pending:
                family, part = results.get(timeout=max(0.0, until - monotonic()))
                parts[family] = part
                pending.discard(family)
        except Empty:
            pass

    fast = [family for family in ordered if family in {*FAST, METRICS}]
    slow = [family for family in ordered if family not in fast]
    start(fast)
    if slow:
        # Wait for the fast families for a quarter of the time, which is long for them.
        collect(deadline - deadline_seconds * 3 / 4, set(fast))
        channels, connections = (parts.get(name, Part()).value or () for name in ("channels", "connections"))
        if PUBLISHES in slow and not suspicious_channels(channels, connections, {}):
            slow.remove(PUBLISHES)
            pending.discard(PUBLISHES)
            parts[PUBLISHES] = Part()
        start(slow)
    collect(deadline, set(ordered))
    if not pending:
        reader.close()
    joined, prometheus = joined_parts(reader, parts)
    return assemble(cluster, clock.now(), joined, prometheus, parts.get(PUBLISHES))


def joined_parts(
    reader: BrokerReader, parts: Mapping[str, Part[Any]]
) -> tuple[dict[str, Part[Any]], Part[MetricsReading]]:
    """Return the parts with the figures of the second source, and how that was read."""
    complete = {family: parts.get(family, Part()) for family in FAMILIES}
    return reader.merger.merged(complete, parts.get(METRICS, Part()), settings_read=reader.settings_listed)


def assemble(
    cluster: str,
    at: Instant,
    parts: Mapping[str, Part[Any]],
    prometheus: Part[MetricsReading] | None = None,
    publishes: Part[ExchangePublishes] | None = None,
) -> Snapshot:
    """Build a snapshot of these parts, without lists that mislead for lack of permissions or statistics.

    Consumers of AMQP 1.0 get what their sessions tell about them, those of the stream protocol what its plugin lists.

    Args:
        cluster: its name.
        at: time of the snapshot.
        parts: family -> part; also `PROCESSES`.
        prometheus: how the endpoints were read.
        publishes: which channel publishes to which exchange.
    """
    complete = {family: parts.get(family, Part()) for family in FAMILIES}
    joined = with_streams(with_sessions(without_misleading_lists(complete)))
    empty = Snapshot(
        cluster=cluster,
        taken=at,
        prometheus=prometheus or Part(),
        exchange_publishes=publishes or Part(),
        processes=parts.get(PROCESSES, Part()),
    )
    snapshot = replace(empty, **dict[str, Any](joined))
    return replace(snapshot, hidden_queues=hidden_queues(snapshot))


def raise_if_unreadable(snapshot: Snapshot) -> None:
    """Raise an error if no family of a snapshot could be read.

    Raises:
        BrokerError: no family could be read; the message is that of the overview.
    """
    # Links do not count: a server that is not a broker answers 404, like a broker without shovels and federation.
    # Sessions and streams do not either: without known AMQP 1.0 connections or plugins they are read without a request.
    if all(part.value is None for name, part in snapshot.parts.items() if name not in ("links", "sessions", "streams")):
        errors = [part.error for part in (*snapshot.parts.values(), snapshot.prometheus) if part.error]
        raise BrokerError(errors[0] if errors else f"cluster {snapshot.cluster!r}: nothing could be read")


def to_part(reading: FamilyReading[T]) -> Part[T]:
    """Convert a reading to the part of a snapshot."""
    return Part(value=reading.value, at=reading.at, seconds=reading.seconds, gaps=reading.gaps)


def _read_part(
    reader: BrokerReader, family: str, deadline_seconds: float, results: "SimpleQueue[tuple[str, Part[Any]]]"
) -> None:
    try:
        if family == "queues":
            reading: FamilyReading[Any] = reader.read_queues_once(deadline_seconds * _SUSPECTS_TIME_SHARE)
        else:
            reading = reader.read(family)
    except BrokerError as error:
        results.put((family, Part(error=str(error))))
    else:
        results.put((family, to_part(reading)))
