"""Commands that several of these rules name."""

import re
from shlex import quote

from ackscope.snapshot import Queue


def set_policy(queue: Queue, name: str, definition: str) -> str:
    """A policy for one queue; it replaces the one in force, for one applies at a time."""
    pattern = quote(f"^{re.escape(queue.name)}$")
    return (
        f"rabbitmqctl set_policy -p {quote(queue.vhost)} {name} {pattern} {quote(definition)} --apply-to queues "
        "--priority 10"
    )
