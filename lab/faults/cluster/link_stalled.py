"""link-stalled: the connection of a shovel to its target is dead and nobody noticed; the shovel runs and moves nothing.

Source: https://www.rabbitmq.com/docs/shovel
"""

import socket
import threading
from contextlib import suppress

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.cluster.nodes import until
from lab.faults.cluster.shovels import PLUGINS, shovel
from lab.faults.fault import Fault, FaultSpec

NAME = "fault.link-stalled"
TARGET = f"{NAME}.target"
_RATE, _MOVED, _BLOCK = 20.0, 5, 65536


class Firewall:
    """A TCP proxy to the broker that can silently drop what clients send, as a firewall that forgot a connection."""

    def __init__(self, host: str, port: int) -> None:
        self.drops = threading.Event()
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                broker = socket.create_connection(self._target)
                for pair in ((client, broker), (broker, client)):
                    threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, origin: socket.socket, other: socket.socket) -> None:
        with suppress(OSError), origin, other:
            while data := origin.recv(_BLOCK):
                if not self.drops.is_set():
                    other.sendall(data)


def inject(fault: Fault) -> None:
    """Move messages through a proxy to a consumed target, and then drop what the shovel sends."""
    fault.make_queue(NAME)
    fault.make_queue(TARGET)
    taker = fault.connect("fault-link-stalled-consumer").channel()
    taker.basic_consume(TARGET, lambda inner, method, _properties, _body: inner.basic_ack(method.delivery_tag))
    channel = fault.connect("fault-link-stalled").channel()
    channel.confirm_delivery()
    firewall = Firewall(fault.address.host, fault.address.port)
    fault.later(firewall.close)
    shovel(fault, NAME, NAME, TARGET, port=firewall.port, prefetch=40)
    publish(channel, NAME, _MOVED)

    def moves() -> bool:
        return bool((fault.ask("GET", f"/api/queues/%2F/{TARGET}").get("message_stats") or {}).get("publish"))

    until(fault, "messages that the shovel moves", moves)
    firewall.drops.set()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(channel, NAME)
        if number == _RATE:
            fault.announce()


SPEC = FaultSpec(
    name="link-stalled",
    rule="link-stalled",
    summary="a shovel runs, but its target confirms nothing: it holds its prefetch and moves no message",
    subject=Subject(kind="link", name=NAME),
    inject=inject,
    extra=PLUGINS,
    one_shot=False,
)
