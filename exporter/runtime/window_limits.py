"""Bounds the memory of older queue readings in a window, however many queues change between readings. Pure.

The window shares unchanged objects, so 1,000 busy queues among 100,000 cost little. 100,000 busy queues would be held
once for every reading in the window.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import is_not

from ackscope.snapshot import Queue, Snapshot
from diagnosis.window import Window

MAX_OLDER_READINGS = 50_000
"""Maximum number of readings of single queues beyond the latest two of each, about 40 MB."""

_WHOLE = 2
"""Number of latest readings that are never cut: change detection compares them."""

QueueList = tuple[Queue, ...]


def limit_window(window: Window, limit: int = MAX_OLDER_READINGS) -> tuple[Window, int]:
    """Return the window with bounded queue history.

    It keeps the history of the deepest queues. For the others it drops the oldest readings, so that the remaining
    history is shorter but contiguous.

    Args:
        window: recent snapshots.
        limit: readings of single queues to keep beyond the latest two.

    Returns:
        the window, the same object if nothing was dropped, and the number of readings dropped.
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
    return replace(window, snapshots=snapshots, endings=()), sum(
        len(reading) - len(cut[id(reading)]) for reading in older
    )


def _distinct(snapshots: Sequence[Snapshot]) -> list[QueueList]:
    """Return the distinct queue readings, oldest first. A snapshot without a new reading repeats the previous one."""
    found: list[QueueList] = []
    for snapshot in snapshots:
        reading = snapshot.queues.value
        if reading is not None and (not found or reading is not found[-1]):
            found.append(reading)
    return found


def _extra(readings: Sequence[QueueList]) -> int:
    """Return an upper estimate of the number of objects that are in a reading and not in the next."""
    return sum(_differing(one, after) for one, after in pairwise(readings))


def _differing(one: QueueList, after: QueueList) -> int:
    if one is after:
        return 0
    if len(one) == len(after):
        # Compare by position first: fast, and exact if no queue was added or removed.
        differing = sum(map(is_not, one, after))
        if differing < len(one) // 10:
            return differing
    return len(one) - len(set(map(id, one)) & set(map(id, after)))


def _with(snapshot: Snapshot, cut: Mapping[int, QueueList]) -> Snapshot:
    reading = snapshot.queues.value
    retained = cut.get(id(reading), reading)
    return snapshot if retained is reading else replace(snapshot, queues=replace(snapshot.queues, value=retained))
