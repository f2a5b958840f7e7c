"""Nodes and probe outcomes for the films of this folder."""

from typing import Any

from ackscope.records import ProbeOutcome, ProbeState, ProbeStep, Quantiles
from ackscope.snapshot import HealthCheck, Node, Overview, Part
from tests.unit.diagnosis.pictures import NODE, OK, WALL, moment

GB = 1_000_000_000
HANGS = "no full answer within 10 s; the node hangs, or is slow: raise timeout"
REFUSED = "connection refused; is the node up, the port right (15672)?"


def node(name: str = NODE, **fields: Any) -> Node:
    """Return a running node, far below all its limits."""
    defaults = {
        "running": True,
        "mem_used": 1 * GB,
        "mem_limit": 10 * GB,
        "disk_free": 500 * GB,
        "disk_free_limit": 50_000_000,
        "fd_used": 100,
        "fd_total": 10_000,
        "proc_used": 500,
        "proc_total": 1_048_576,
        "run_queue": 1,
        "processors": 4,
    }
    return Node(name=name, **{**defaults, **fields})


def frame(version: str = "4.3.6", **fields: Any) -> Any:
    """Return a film of one node; fields that are functions are called for each second."""

    def _at(t: float) -> dict[str, Any]:
        now = {key: value(t) if callable(value) else value for key, value in fields.items()}
        return {"nodes": (node(**now),), "version": version}

    return _at


def check(name: str, *, ok: bool = False, reason: str | None = None, **fields: Any) -> tuple[HealthCheck, ...]:
    """Return health checks: a passed alarm check, and this one."""
    return (OK, HealthCheck(name=name, ok=ok, reason=reason, **fields))


def seconds(p50: float, p90: float | None = None, count: int = 100) -> Quantiles:
    """Return quantiles of the last minute."""
    most = p50 if p90 is None else p90
    return Quantiles(count=count, p50=p50, p90=most, p99=most, max=most)


def outcome(probe: str, stream: str | None = None, **fields: Any) -> ProbeOutcome:
    """Return the outcome of a probe that is served."""
    defaults: dict[str, Any] = {
        "queue_type": stream if stream in {"classic", "quorum"} else "none",
        "vhost": "/",
        "queue": "",
        "node": "",
        "at": WALL,
        "state": ProbeState.RUNNING,
        "success": True,
        "connects": 1,
    }
    return ProbeOutcome(probe=probe, stream=stream or probe, **{**defaults, **fields})


def round_trip_probe(p50: float = 0.001, reason: str | None = None) -> ProbeOutcome:
    """The rtt probe."""
    step = ProbeStep(attempts=60, failures=1 if reason else 0, seconds=seconds(p50), reason=reason)
    return outcome("rtt", steps={"declare": step}, success=reason is None)


def handshake_probe(tcp: str | None = None, opening: str | None = None, *, worked: bool = True) -> ProbeOutcome:
    """The handshake probe, with the reason why its last step failed."""
    before = 5 if worked else 0
    steps = {"tcp": ProbeStep(attempts=before + 1, failures=1 if tcp else 0, reason=tcp)}
    if tcp is None:
        steps["open"] = ProbeStep(attempts=before + 1, failures=1 if opening else 0, reason=opening)
    connects = before if worked else 0
    return outcome("handshake", steps=steps, success=not (tcp or opening), connects=connects)


def late(value: Any, at: float, error: str | None) -> Part[Any]:
    """A family that was last read at some second, and cannot be read now."""
    return Part(value=value, at=moment(at), seconds=0.1, error=error)


def silent(error: str = HANGS, since: float = 20.0, nodes: tuple[Node, ...] | None = None) -> Any:
    """A film of a node that answers until some second, and not after that."""

    def _at(t: float) -> dict[str, Any]:
        at, why = (t, None) if t <= since else (since, error)
        overview = Overview(rabbitmq_version="4.3.6", statistics=True, rates_mode="basic", node=NODE)
        values = {"overview": overview, "nodes": nodes or (node(),), "health": (OK,), "queues": ()}
        return {name: late(value, at, why) for name, value in values.items()}

    return _at
