"""How findings say things: durations, amounts, clients, and commands that can be pasted into a shell."""

import shlex
from collections.abc import Iterable
from urllib.parse import quote

from ackscope.snapshot import Connection, Queue
from diagnosis.view import Link

API = "http://MANAGEMENT_HOST:15672"
"""Stands for the management address in commands: diagnosis does not know it."""


def lasting(seconds: float) -> str:
    """A duration as a person would say it: `8 s`, `4 min`, `2 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def amount(number: int, noun: str) -> str:
    """A number and its noun: `1 message`, `2 messages`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(count: float) -> str:
    """Bytes as a person would say them."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def some(items: Iterable[str], limit: int = 3) -> str:
    """A few names, and how many more there are."""
    names = list(items)
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def client(connection: Connection | None, otherwise: str | None) -> str:
    """An application by the name that it gave itself, else by its connection."""
    if connection is None:
        return otherwise or "unknown connection"
    return connection.client_name or connection.client_product or connection.name


def peer(link: Link) -> str:
    """Where a consumer's process runs, `host:port`; "" where the broker does not say."""
    host = link.consumer.peer_host or (link.connection.peer_host if link.connection else None)
    port = link.consumer.peer_port or (link.connection.peer_port if link.connection else None)
    return f"{host}:{port}" if host and port else host or ""


def whose(link: Link) -> str:
    """A consumer, told so that it can be found: tag, application, where it runs, channel."""
    at = peer(link)
    place = f" at {at}" if at else ""
    name = client(link.connection, link.consumer.connection_name)
    return f"consumer {link.consumer.tag!r} of {name!r}{place}, channel {link.consumer.channel_name or 'unknown'!r}"


def place(queue: Queue) -> str:
    """A queue as an argument of the command-line tools."""
    return f"-p {shlex.quote(queue.vhost)} {shlex.quote(queue.name)}"


def list_consumers(queue: Queue) -> str:
    """The command that shows who consumes from a queue."""
    return f"rabbitmqctl list_consumers -p {shlex.quote(queue.vhost)} | grep -F -- {shlex.quote(queue.name)}"


def close_connection(name: str, reason: str) -> tuple[str, str]:
    """Two ways to close a connection: over HTTP by its name, on a node by its Erlang pid.

    `rabbitmqctl close_connection` takes the pid only, the management API the name only.
    """
    header = shlex.quote(f"X-Reason: {reason}")
    http = f"curl -u USER -X DELETE -H {header} {API}/api/connections/{quote(name, safe='')}"
    pid = f"rabbitmqctl list_connections pid name | grep -F -- {shlex.quote(name)}"
    return http, f"{pid}   # then: rabbitmqctl close_connection '<PID>' {shlex.quote(reason)}"
