"""One look at a broker, for the commands that run once."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from ackscope.clock import Clock, Instant
from ackscope.errors import BrokerError
from ackscope.snapshot import Part, Snapshot
from exporter.broker.blind import hidden_queues, without_false_emptiness
from exporter.broker.credentials import Credentials
from exporter.broker.families import FAMILIES, FAST
from exporter.broker.reader import Reader
from exporter.broker.reading import Reading
from exporter.broker.settings import ManagementSettings

_SUSPECTS_PART = 0.2
"""The part of the time that single queues of a large broker may be asked for."""


def read_once(
    cluster: str,
    settings: ManagementSettings,
    clock: Clock,
    deadline_seconds: float,
    families: Iterable[str] = FAMILIES,
    credentials: Credentials | None = None,
) -> Snapshot:
    """Read families once, side by side; what failed or took too long is a part with its error.

    What changes by the second is read first, what changes by the hour once that is done or takes its time. Of a large
    broker all queues have their totals, and only the most suspicious their statistics.

    Args:
        cluster: name for the snapshot.
        settings: how to reach it.
        clock: dates readings and the snapshot.
        deadline_seconds: the longest this takes.
        families: those to read; the parts of others stay empty.
        credentials: that outlive this reading; its own without.

    Raises:
        UsageError: the address is not one.
        ConfigError: a file of the settings cannot be read.
    """
    limited = settings.model_copy(update={"timeout": min(settings.timeout, deadline_seconds)})
    reader = Reader(limited, clock, credentials=credentials)
    chosen = set(families)
    wanted = [family for family in FAMILIES if family in chosen]
    done: SimpleQueue[tuple[str, Part[Any]]] = SimpleQueue()
    until = monotonic() + deadline_seconds
    late = f"no answer within {deadline_seconds:g} s"
    parts: dict[str, Part[Any]] = {family: Part(error=late) for family in wanted}
    waiting = set(wanted)

    def begin(names: list[str]) -> None:
        for family in names:
            # Daemons: one that hangs past the deadline ends with its own time limit, and holds up nobody.
            arguments = (reader, family, deadline_seconds, done)
            threading.Thread(target=_read_part, args=arguments, name=f"read-{family}", daemon=True).start()

    def gather(before: float, awaited: set[str]) -> None:
        try:
            while awaited & waiting:
                family, part = done.get(timeout=max(0.0, before - monotonic()))
                parts[family] = part
                waiting.discard(family)
        except Empty:
            pass

    fast = [family for family in wanted if family in FAST]
    slow = [family for family in wanted if family not in FAST]
    begin(fast)
    if slow:
        # A quarter of the time is long for what is fast: after that, nothing waits for anything.
        gather(until - deadline_seconds * 3 / 4, set(fast))
        begin(slow)
    gather(until, set(wanted))
    if not waiting:
        reader.close()
    return assemble(cluster, clock.now(), parts)


def assemble(cluster: str, taken: Instant, parts: Mapping[str, Part[Any]]) -> Snapshot:
    """A snapshot of these parts, its blind spots told."""
    told = {family: parts.get(family, Part()) for family in FAMILIES}
    snapshot = replace(Snapshot(cluster=cluster, taken=taken), **dict[str, Any](without_false_emptiness(told)))
    return replace(snapshot, hidden_queues=hidden_queues(snapshot))


def raise_if_unreadable(snapshot: Snapshot) -> None:
    """For commands that cannot go on without a broker.

    Raises:
        BrokerError: no family at all could be read; the message is that of the overview.
    """
    # A broker without shovels and federation and a server that is no broker answer alike where those are asked for.
    if all(part.value is None for name, part in snapshot.parts.items() if name != "links"):
        errors = [part.error for part in snapshot.parts.values() if part.error]
        raise BrokerError(errors[0] if errors else f"cluster {snapshot.cluster!r}: nothing was read")


def part_of(reading: Reading) -> Part[Any]:
    """The part of a snapshot that a reading makes."""
    return Part(value=reading.value, at=reading.at, seconds=reading.seconds, gaps=reading.gaps)


def _read_part(
    reader: Reader, family: str, deadline_seconds: float, done: "SimpleQueue[tuple[str, Part[Any]]]"
) -> None:
    try:
        if family == "queues":
            reading = reader.look_at_queues(deadline_seconds * _SUSPECTS_PART)
        else:
            reading = reader.read(family)
    except BrokerError as error:
        done.put((family, Part(error=str(error))))
    else:
        done.put((family, part_of(reading)))
