"""Passes snapshots on. After a reload it fills gaps with older readings, which keep their true age."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ackscope.snapshot import Part, Snapshot
from exporter.broker.prometheus.merge import PROCESSES
from exporter.broker.snapshot_builder import assemble


def fill_missing(first: Snapshot, again: Snapshot) -> Snapshot:
    """Return the second snapshot, with the parts that only the first could read. They keep their true age."""
    parts = {
        name: _older(first.parts[name], part) if part.value is None else part for name, part in again.parts.items()
    } | {PROCESSES: again.processes}
    return assemble(again.cluster, again.taken, parts, again.prometheus, again.exchange_publishes)


class SnapshotRelay:
    """Passes a poller's snapshots on until it is closed.

    Args:
        sink: receives the snapshots.
        before: last snapshot of the poller that this one replaces, if it polled the same broker. Endpoints that have
            not been read again yet keep their old reading, so that a reload leaves no gap.
    """

    def __init__(self, sink: Callable[[Snapshot], None], before: Snapshot | None = None) -> None:
        self._sink = sink
        self._before = {name: part for name, part in before.parts.items() if part.value is not None} if before else {}
        self._shown: dict[str, tuple[Part[Any], Part[Any]]] = {}
        self._closed = False
        self._lock = threading.Lock()

    def __call__(self, snapshot: Snapshot) -> None:
        """Pass one snapshot on. Called from one thread."""
        # Drop old readings one by one: an endpoint that is never read must not hold the old queues in memory.
        self._before = {name: part for name, part in self._before.items() if snapshot.parts[name].value is None}
        whole = self._filled(snapshot) if self._before else snapshot
        with self._lock:
            if not self._closed:
                self._sink(whole)

    def close(self) -> None:
        """Pass on no more snapshots. Waits for a call in progress."""
        with self._lock:
            self._closed = True

    def _filled(self, snapshot: Snapshot) -> Snapshot:
        parts = {**snapshot.parts, PROCESSES: snapshot.processes}
        for name, old in self._before.items():
            # Keep the identity of the object: consumers detect a new attempt by `is`.
            seen = self._shown.get(name)
            if seen is None or seen[0] is not parts[name]:
                seen = self._shown[name] = (parts[name], _older(old, parts[name]))
            parts[name] = seen[1]
        return assemble(snapshot.cluster, snapshot.taken, parts, snapshot.prometheus, snapshot.exchange_publishes)


def _older(old: Part[Any], new: Part[Any]) -> Part[Any]:
    return replace(old, error=new.error)
