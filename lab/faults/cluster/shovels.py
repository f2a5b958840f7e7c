"""A shovel between two queues of the broker, for faults of links."""

from lab.faults.fault import Fault
from lab.node import Extra

PLUGINS = Extra(plugins=("rabbitmq_shovel_management",))


def shovel(
    fault: Fault,
    name: str,
    source: str,
    target: str | None,
    *,
    exchange: str | None = None,
    port: int | None = None,
    prefetch: int = 1000,
) -> None:
    """Declare a shovel that waits for confirms; it is deleted when the fault ends.

    Args:
        fault: the fault.
        name: name of the shovel.
        source: queue that it takes messages from.
        target: queue that it publishes to; None with `exchange`.
        exchange: exchange that it publishes to, each message with its own routing key.
        prefetch: messages that it holds at most.
        port: of its target, if that is not the port of the broker; then without heartbeats.
    """
    path = f"/api/parameters/shovel/%2F/{name}"
    host = f"amqp://{fault.address.username}:{fault.address.password}@{fault.address.host}"
    uri = f"{host}:{fault.address.port}"
    there = f"{host}:{port}?heartbeat=0" if port is not None else uri
    to = {"dest-queue": target} if exchange is None else {"dest-exchange": exchange}
    value: dict[str, object] = {"src-uri": uri, "src-queue": source, "dest-uri": there, "ack-mode": "on-confirm", **to}
    value["src-prefetch-count"] = prefetch
    fault.later(lambda: fault.ask("DELETE", path))
    fault.ask("PUT", path, {"value": value})
