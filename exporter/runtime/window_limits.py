"""What older readings of queues may take: bounded, however many queues change at every reading. Pure.

The window shares what did not change, so a thousand busy queues among a hundred thousand cost little; a hundred
thousand busy ones would be held as often as the window has readings.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import is_not

from ackscope.snapshot import Queue, Snapshot
from diagnosis.window import Window

MAX_OLDER_READINGS = 50_000
"""Readings of single queues that are held at most beyond the latest two of each: some 40 MB."""

_WHOLE = 2
"""The latest readings, which are always whole: whether something moved is read off them."""

QueueList = tuple[Queue, ...]


def limit_window(window: Window, limit: int = MAX_OLDER_READINGS) -> tuple[Window, int]:
    """The window with as much of the past of its queues as may be held.

    Those with most messages keep theirs. Of another queue the readings before it changed are let go, the oldest first,
    so what is left of it has no gap: its past is shorter, as if it had been seen for less long.

    Returns:
        the window, the very same one where nothing is let go; and how many readings of single queues were.
    """
    readings = _distinct(window.snapshots)
    newest, older = readings[-_WHOLE:], readings[:-_WHOLE]
    if not older or _extra([*older, newest[0]]) <= limit:
        return window, 0
    with_messages = ((queue.messages, queue.key) for queue in newest[-1] if queue.messages)
    keys = {key for _, key in heapq.nlargest(limit // len(older), with_messages)}
    cut: dict[int, QueueList] = {}
    retained = newest[0]
    for reading in reversed(older):
        held = set(map(id, retained))
        retained = tuple(queue for queue in reading if id(queue) in held or queue.key in keys)
        cut[id(reading)] = retained
    snapshots = tuple(_with(snapshot, cut) for snapshot in window.snapshots)
    return replace(window, snapshots=snapshots), sum(len(reading) - len(cut[id(reading)]) for reading in older)


def _distinct(snapshots: Sequence[Snapshot]) -> list[QueueList]:
    """The readings of queues, oldest first; a snapshot that read others only has that of the one before."""
    found: list[QueueList] = []
    for snapshot in snapshots:
        reading = snapshot.queues.value
        if reading is not None and (not found or reading is not found[-1]):
            found.append(reading)
    return found


def _extra(readings: Sequence[QueueList]) -> int:
    """How many objects are in readings and not in the one after them; rather too many than too few."""
    return sum(_differing(one, after) for one, after in pairwise(readings))


def _differing(one: QueueList, after: QueueList) -> int:
    if one is after:
        return 0
    if len(one) == len(after):
        # By place first: quick, and right as long as none came or went.
        differing = sum(map(is_not, one, after))
        if differing < len(one) // 10:
            return differing
    return len(one) - len(set(map(id, one)) & set(map(id, after)))


def _with(snapshot: Snapshot, cut: Mapping[int, QueueList]) -> Snapshot:
    reading = snapshot.queues.value
    retained = cut.get(id(reading), reading)
    return snapshot if retained is reading else replace(snapshot, queues=replace(snapshot.queues, value=retained))
