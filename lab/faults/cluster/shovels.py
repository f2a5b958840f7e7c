"""A shovel between two queues of the broker, for faults of links."""

from lab.faults.fault import Fault
from lab.node import Extra

PLUGINS = Extra(plugins=("rabbitmq_shovel_management",))


def shovel(fault: Fault, name: str, source: str, target: str) -> None:
    """Declare a shovel that waits for confirms; it is deleted when the fault ends.

    Args:
        fault: the fault.
        name: name of the shovel.
        source: queue that it takes messages from.
        target: queue that it publishes to.
    """
    path = f"/api/parameters/shovel/%2F/{name}"
    uri = f"amqp://{fault.address.username}:{fault.address.password}@{fault.address.host}:{fault.address.port}"
    value = {"src-uri": uri, "src-queue": source, "dest-uri": uri, "dest-queue": target, "ack-mode": "on-confirm"}
    fault.later(lambda: fault.ask("DELETE", path))
    fault.ask("PUT", path, {"value": value})
