"""Helpers of cluster faults: stop nodes and wait until the cluster reports them down."""

import time
from collections.abc import Callable

from ackscope.errors import BrokerError
from lab.faults.fault import Fault

LAST = 2
"""Index of the third node; the first one is monitored."""
LAST_NAME = "lab3@localhost"

_WITHIN = 40.0
_POLL = 0.5


def until(fault: Fault, what: str, holds: Callable[[], bool], seconds: float = _WITHIN) -> None:
    """Wait for a condition, or until the fault should end.

    Raises:
        BrokerError: timed out; the message names the condition.
    """
    deadline = time.monotonic() + seconds
    while not fault.ending.is_set():
        if holds():
            return
        if time.monotonic() > deadline:
            raise BrokerError(f"not observed within {seconds:.0f} s: {what}")
        fault.ending.wait(_POLL)


def running(fault: Fault) -> set[str]:
    """Return the names of the nodes that the first node reports as running."""
    return {node["name"] for node in fault.ask("GET", "/api/nodes") if node.get("running")}


def seen_down(fault: Fault, *indexes: int) -> None:
    """Wait until the first node reports these nodes as down."""
    names = {fault.lab.nodes[index].name for index in indexes}
    until(fault, f"{', '.join(sorted(names))} down", lambda: not names & running(fault))


def stop_apps(fault: Fault, *indexes: int) -> None:
    """Stop the broker on these nodes, and start it again in reverse order when the fault ends."""
    for index in indexes:
        fault.later(lambda index=index: fault.lab.ctl(index, "start_app"))  # type: ignore[misc]  # mypy: lambda default
        fault.lab.ctl(index, "stop_app")
    seen_down(fault, *indexes)


def has_replicas(fault: Fault, name: str, count: int) -> None:
    """Wait until that many replicas of a queue are online."""

    def online() -> bool:
        queues = [queue for queue in fault.ask("GET", "/api/queues") if queue["name"] == name]
        return any(len(queue.get("online") or ()) >= count for queue in queues)

    until(fault, f"{count} replicas of {name} online", online)
