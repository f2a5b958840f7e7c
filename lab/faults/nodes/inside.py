"""Helpers of node faults: wait until the broker reports the fault, and run Erlang processes in the node."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.faults.fault import Fault
from lab.faults.listed import node_figures

NODE = Subject(kind="node", name="lab1@localhost", node="lab1@localhost")
"""The first node of every lab."""

_WITHIN = 25.0
_STEP = 0.2


def until(fault: Fault, holds: Callable[[], object], what: str) -> None:
    """Wait until the broker reports the fault, or until the fault should end.

    Raises:
        BrokerError: timed out.
    """
    deadline = time.monotonic() + _WITHIN
    while not fault.ending.is_set() and not holds():
        if time.monotonic() > deadline:
            raise BrokerError(f"{what}: not observed within {_WITHIN:.0f} s")
        fault.ending.wait(_STEP)


def node(fault: Fault) -> Mapping[str, Any]:
    """Return the figures of the first node."""
    return node_figures(fault, NODE.name)


def fails(fault: Fault, check: str) -> bool:
    """Return whether a health check fails."""
    try:
        fault.ask("GET", f"/api/health/checks/{check}")
    except BrokerError as error:
        return " 503 " in str(error)
    return False


def run_inside(fault: Fault, body: str) -> None:
    """Run an Erlang process in the node, registered as `ackscope_fault`; it ends with the fault.

    Args:
        fault: the fault that needs it.
        body: Erlang expressions; link all processes that they start to this one, which stays alive.
    """
    stop = "case whereis(ackscope_fault) of undefined -> ok; P -> exit(P, kill) end."
    fault.later(lambda: fault.lab.ctl(0, "eval", stop))
    live = f"spawn(fun() -> {body}, receive stop -> ok end end)"
    fault.lab.ctl(0, "eval", f"register(ackscope_fault, {live}).")
