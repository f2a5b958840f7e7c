"""Helpers of consumer faults: publishing with confirms, and the backlog of a queue."""

from pika.adapters.blocking_connection import BlockingChannel

from lab.faults.fault import Fault


def publisher(fault: Fault, name: str) -> BlockingChannel:
    """Return a channel in confirm mode on a new connection."""
    channel = fault.connect(name).channel()
    channel.confirm_delivery()
    return channel


def ready(channel: BlockingChannel, queue: str) -> int:
    """Return the number of ready messages of a queue now."""
    return int(channel.queue_declare(queue, passive=True).method.message_count)
