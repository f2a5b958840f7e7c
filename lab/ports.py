"""Free TCP ports on loopback for listeners that restart on the same port."""

import random
import socket
from pathlib import Path

from ackscope.errors import MissingPart

_LOWEST = 20000
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int) -> list[int]:
    """Return distinct ports that nothing listens on now.

    They are below the range of ports for outgoing connections. A client may use a port of that range when a killed node
    restarts on it.

    Raises:
        MissingPart: fewer than `count` are free.
    """
    highest = _first_ephemeral()
    candidates = random.SystemRandom().sample(range(_LOWEST, highest), highest - _LOWEST)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise MissingPart(
        f"fewer than {count} free TCP ports between {_LOWEST} and {highest}: stop other programs that listen there"
    )


def _first_ephemeral() -> int:
    try:
        first = int(_EPHEMERAL.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = 32768
    return first if first > _LOWEST + 1000 else 61000


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        # Like the broker, which can listen on a port in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
