"""What the faults of consumers have in common: confirmed publishing, and looking how full a queue is."""

from urllib.parse import quote

from pika.adapters.blocking_connection import BlockingChannel

from lab.faults.fault import Fault


def publisher(fault: Fault, name: str) -> BlockingChannel:
    """A channel with confirms on a connection of its own."""
    channel = fault.connect(name).channel()
    channel.confirm_delivery()
    return channel


def ready(channel: BlockingChannel, queue: str) -> int:
    """Messages that wait in a queue, as the broker says now."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)


def queue_path(fault: Fault, queue: str) -> str:
    """Where the management API tells of a queue."""
    return f"/api/queues/{quote(fault.address.vhost, safe='')}/{quote(queue, safe='')}"
