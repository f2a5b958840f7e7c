"""What an earlier reading knew and a later one does not yet: carried on, with its true age. Pure."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ackscope.snapshot import Part, Snapshot
from exporter.broker.snapshot_builder import assemble


def carried(first: Snapshot, again: Snapshot) -> Snapshot:
    """The second look, with what only the first one could read: older, and its age says so."""
    parts = {
        name: _older(first.parts[name], part) if part.value is None else part for name, part in again.parts.items()
    }
    return assemble(again.cluster, again.taken, parts)


class Feed:
    """Hands a poller's snapshots on until it is turned off.

    Args:
        hand_on: takes them.
        before: the last snapshot of the poller that this one replaces, where it asked the same broker: families that
            were not read again yet are shown as they were, so that a reload makes no gap.
    """

    def __init__(self, hand_on: Callable[[Snapshot], None], before: Snapshot | None = None) -> None:
        self._hand_on = hand_on
        self._before = {name: part for name, part in before.parts.items() if part.value is not None} if before else {}
        self._shown: dict[str, tuple[Part[Any], Part[Any]]] = {}
        self._off = False
        self._lock = threading.Lock()

    def __call__(self, snapshot: Snapshot) -> None:
        """Hand one on. Called by one thread."""
        # Let go one by one: a family that is never read must not hold the queues of old in memory.
        self._before = {name: part for name, part in self._before.items() if snapshot.parts[name].value is None}
        whole = self._filled(snapshot) if self._before else snapshot
        with self._lock:
            if not self._off:
                self._hand_on(whole)

    def off(self) -> None:
        """Hand nothing on any more, whatever still comes; waits for what is being handed on."""
        with self._lock:
            self._off = True

    def _filled(self, snapshot: Snapshot) -> Snapshot:
        parts = dict(snapshot.parts)
        for name, old in self._before.items():
            # One attempt is one object, for whoever counts attempts by it.
            seen = self._shown.get(name)
            if seen is None or seen[0] is not parts[name]:
                seen = self._shown[name] = (parts[name], _older(old, parts[name]))
            parts[name] = seen[1]
        return assemble(snapshot.cluster, snapshot.taken, parts)


def _older(old: Part[Any], new: Part[Any]) -> Part[Any]:
    return replace(old, error=new.error)
