"""What the broker lists about a fault: from the management API, or from its own tools where that has no statistics."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from lab.faults.fault import Fault

_Row = Mapping[str, Any]
_PROPERTIES = "client_properties"


def connections_named(fault: Fault, name: str) -> Sequence[_Row]:
    """Return the connections whose client calls itself so, with `state` and `send_pend`."""
    columns = (_PROPERTIES, "state", "send_pend")
    found = fault.ask("GET", f"/api/connections?columns={_PROPERTIES}.connection_name,state,send_pend")
    rows = found or _by_tool(fault, "list_connections", *columns)
    return [each for each in rows if _client_name(each[_PROPERTIES]) == name]


def consumers_of(fault: Fault, queue: str) -> Sequence[_Row]:
    """Return the consumers of a queue, each with `active`."""
    if _keeps_statistics(fault):
        return [each for each in fault.ask("GET", "/api/consumers") if each["queue"]["name"] == queue]
    rows = _by_tool(fault, "list_consumers", "queue_name", "active")
    return [each for each in rows if each["queue_name"] == queue]


def node_figures(fault: Fault, name: str) -> _Row:
    """Return a row of `/api/nodes`; without statistics, its memory, disk and processes by the names of that API."""
    found: _Row = next(each for each in fault.ask("GET", "/api/nodes") if each["name"] == name)
    return found if "mem_limit" in found else {**found, **_status(fault)}


def _status(fault: Fault) -> dict[str, Any]:
    status = orjson.loads(fault.lab.ctl(0, "--quiet", "status", "--formatter", "json"))
    memory = status["memory"]
    return {
        "mem_used": memory["total"][memory["strategy"]],
        "mem_limit": status["vm_memory_high_watermark_limit"],
        "disk_free": status["disk_free"],
        "disk_free_limit": status["disk_free_limit"],
        "proc_used": status["processes"]["used"],
        "proc_total": status["processes"]["limit"],
        "run_queue": status["run_queue"],
    }


def _keeps_statistics(fault: Fault) -> bool:
    return not fault.ask("GET", "/api/overview").get("disable_stats")


def _client_name(properties: Any) -> str | None:
    """Return the name that a client gives itself; the tools list properties as `[name, type, value]`."""
    named = properties if isinstance(properties, Mapping) else {each[0]: each[-1] for each in properties or ()}
    return named.get("connection_name")


def _by_tool(fault: Fault, command: str, *columns: str) -> Sequence[_Row]:
    rows: Sequence[_Row] = orjson.loads(fault.lab.ctl(0, "--quiet", command, *columns, "--formatter", "json"))
    return rows
