"""One look at a broker, for the commands that run once."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Snapshot
from exporter.broker.blind import hidden_queues
from exporter.broker.families import FAMILIES
from exporter.broker.reader import Reader
from exporter.broker.settings import ManagementSettings


def read_once(cluster: str, settings: ManagementSettings, clock: Clock, deadline_seconds: float) -> Snapshot:
    """Read every family once, side by side; what failed or took too long is a part with its error.

    Raises:
        UsageError: the address is not one.
        ConfigError: a file of the settings cannot be read.
    """
    limited = settings.model_copy(update={"timeout": min(settings.timeout, deadline_seconds)})
    reader = Reader(limited, clock)
    done: SimpleQueue[tuple[str, Part[Any]]] = SimpleQueue()
    for family in FAMILIES:
        # Daemons: one that hangs past the deadline ends with its own time limit, and holds up nobody.
        threading.Thread(target=_read_part, args=(reader, family, done), name=f"read-{family}", daemon=True).start()
    until = monotonic() + deadline_seconds
    late = f"no answer within {deadline_seconds:g} s"
    parts: dict[str, Part[Any]] = {family: Part(error=late) for family in FAMILIES}
    try:
        for _ in FAMILIES:
            family, part = done.get(timeout=max(0.0, until - monotonic()))
            parts[family] = part
    except Empty:
        pass
    else:
        reader.close()
    return assemble(cluster, clock.now(), parts)


def assemble(cluster: str, taken: Instant, parts: Mapping[str, Part[Any]]) -> Snapshot:
    """A snapshot of these parts, its blind spot told."""
    snapshot = replace(Snapshot(cluster=cluster, taken=taken), **dict[str, Any](parts))
    return replace(snapshot, hidden_queues=hidden_queues(snapshot))


def raise_if_unreadable(snapshot: Snapshot) -> None:
    """For commands that cannot go on without a broker.

    Raises:
        BrokerError: no family at all could be read; the message is that of the overview.
    """
    if all(part.value is None for part in snapshot.parts.values()):
        raise BrokerError(snapshot.overview.error or f"cluster {snapshot.cluster!r}: nothing was read")


def _read_part(reader: Reader, family: str, done: "SimpleQueue[tuple[str, Part[Any]]]") -> None:
    try:
        reading = reader.read(family)
    except BrokerError as error:
        done.put((family, Part(error=str(error))))
    else:
        done.put((family, Part(value=reading.value, at=reading.at, seconds=reading.seconds, gaps=reading.gaps)))
