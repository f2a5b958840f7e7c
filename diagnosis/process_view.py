"""Shows the channels and consumers that are known by their Erlang process, where the broker lists no clients.

Such a channel has no connection, user or client. So only rules that say so in their page (`by_process`) see them.
"""

from dataclasses import replace

from ackscope.findings import Fact, Finding
from ackscope.snapshot import Part, Snapshot
from diagnosis.window import Window

PROCESS_LISTS = frozenset({"channels", "consumers"})
"""Families that such a view has."""


def with_processes(window: Window, own_prefixes: tuple[str, ...]) -> Window:
    """Return the window with lists of channels and consumers; the same window if there are none.

    Channels of our own probes are left out: they are known by the queues and exchanges that they use.
    """
    latest = window.latest
    if latest is None or latest.processes.value is None:
        return window
    return replace(window, snapshots=tuple(_with_processes(each, own_prefixes) for each in window.snapshots))


def _with_processes(snapshot: Snapshot, own_prefixes: tuple[str, ...]) -> Snapshot:
    part = snapshot.processes
    if part.value is None:
        return replace(snapshot, channels=Part(), consumers=Part())
    own = {name for name, used in part.value.used.items() if any(each.startswith(own_prefixes) for each in used)}
    channels = tuple(each for each in part.value.channels if each.name not in own)
    consumers = tuple(each for each in part.value.consumers if each.channel_name not in own)
    return replace(
        snapshot,
        channels=Part(value=channels, at=part.at, seconds=part.seconds, every=part.every, origins=part.origins),
        consumers=Part(value=consumers, at=part.at, seconds=part.seconds, every=part.every),
    )


def named_processes(finding: Finding) -> Finding:
    """Return a finding from such a view with the fact `processes`: its channels by their node and Erlang process."""
    places = (name.split() for name in finding.involved.channels)
    processes: list[Fact] = [{"node": node, "process": process} for process, node in places]
    return replace(finding, facts={**finding.facts, "processes": processes}) if processes else finding
