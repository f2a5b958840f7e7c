"""A virtual host of a fault, with or without a limit."""

from lab.faults.fault import Fault


def limited_vhost(fault: Fault, name: str, limit: str, value: int) -> None:
    """Create a virtual host with a limit; it is deleted when the fault ends.

    Args:
        fault: the fault in effect.
        name: name of the virtual host.
        limit: `max-connections` or `max-queues`.
        value: the limit.
    """
    make_vhost(fault, name)
    fault.ask("PUT", f"/api/vhost-limits/{name}/{limit}", {"value": value})


def make_vhost(fault: Fault, name: str) -> None:
    """Create a virtual host that the user of the fault may use; it is deleted when the fault ends."""
    fault.ask("PUT", f"/api/vhosts/{name}", {})
    fault.later(lambda: fault.ask("DELETE", f"/api/vhosts/{name}"))
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    fault.ask("PUT", f"/api/permissions/{name}/{fault.address.username}", everything)
