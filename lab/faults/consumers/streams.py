"""Clients of the stream protocol: readers that stop, fall behind or miss messages, and connections without end."""

import time
from collections.abc import Callable
from typing import Any

from ackscope.findings import Subject
from lab.faults.consumers.native_spec import native_spec
from lab.faults.fault import Fault, FaultSpec
from lab.native import StreamConnections, listener

_RATE, _SLOW = 20.0, 4.0
_AHEAD = 60
"""Messages that a reader is behind when the fault is in effect."""
_SEGMENT, _RETAINED, _BYTES = 100_000, 300_000, 2_000
_LEAKED, _MOST = 10, 300
_CONNECTIONS = 2.0
_WORKERS, _LIVES = 5, 8.0
_STORED, _FIRST, _RESTARTS = 1000, 100.0, 20.0
"""Publishing ids before the first restart, messages per second until then, and seconds between restarts."""


def _clients(fault: Fault) -> StreamConnections:
    clients = StreamConnections(fault.address, listener(fault.ask, "stream", fault.control))
    fault.later(clients.close)
    return clients


def _behind(
    name: str,
    *,
    reads: float,
    most: int | None = None,
    rate: float = _RATE,
    size: int = 100,
    arguments: dict[str, object] | None = None,
) -> Callable[[Fault], None]:
    """Return an injection: a publisher and a reader that falls behind.

    Args:
        name: name of the fault.
        reads: messages that are read per second; 0 is as fast as possible.
        most: messages after which no more are asked for.
        rate: messages to publish per second.
        size: bytes of each.
        arguments: arguments of the stream.
    """

    def inject(fault: Fault) -> None:
        stream = f"fault.{name}"
        fault.make_queue(stream, {"x-queue-type": "stream", **(arguments or {})})
        clients = _clients(fault)
        sent = clients.write(clients.connect(f"fault-{name}-publisher"), stream, rate, size)
        received = clients.read(clients.connect(f"fault-{name}"), stream, rate=reads, most=most)
        announced = False
        for _ in fault.ticks(0.5):
            if not announced and received() and sent() - received() >= _AHEAD:
                fault.announce()
                announced = True

    return inject


def _fill(fault: Fault) -> None:
    """Publish 2 MB a second to a stream that keeps all of it."""
    stream = "fault.stream-fed-for-ever"
    fault.make_queue(stream, {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 4_000_000})
    clients = _clients(fault)
    clients.write(clients.connect("fault-stream-fed-for-ever"), stream, 100, 20_000)
    for number, _ in enumerate(fault.ticks(0.5)):
        if number == 4:
            fault.announce()


def _leak(fault: Fault) -> None:
    """Open two connections a second, up to a few hundred."""
    clients = _clients(fault)
    for opened, _ in enumerate(fault.ticks(1 / _CONNECTIONS), start=1):
        if opened <= _MOST:
            clients.connect("fault-stream-connection-leak")
        if opened == _LEAKED:
            fault.announce()


def _churn(fault: Fault) -> None:
    """Run five workers that end after eight seconds and start again: briefer connections are in no list."""
    clients = _clients(fault)
    workers: list[Any] = []
    for started, _ in enumerate(fault.ticks(_LIVES / _WORKERS), start=1):
        workers.append(clients.connect("fault-stream-connection-churn"))
        if len(workers) > _WORKERS:
            clients.disconnect(workers.pop(0))
        if started == 2 * _WORKERS:
            fault.announce()


def _repeat_ids(fault: Fault) -> None:
    """Start the publisher again and again; its ids begin with 0 each time, and the stream has higher ones."""
    name = "stream-deduplication"
    stream = f"fault.{name}"
    fault.make_queue(stream, {"x-queue-type": "stream"})
    clients = _clients(fault)
    publisher = clients.connect(f"fault-{name}")
    sent, rate = clients.write(publisher, stream, _FIRST), _RATE
    lasts, announced = _STORED / _FIRST, False
    began = time.monotonic()
    for _ in fault.ticks(0.5):
        if time.monotonic() - began >= lasts:
            clients.disconnect(publisher)
            publisher = clients.connect(f"fault-{name}")
            sent, began, lasts = clients.write(publisher, stream, rate), time.monotonic(), _RESTARTS
        if not announced and lasts == _RESTARTS and sent() >= _AHEAD:
            fault.announce()
            announced = True


def _spec(name: str, rule: str, summary: str, inject: Callable[[Fault], None], **more: Any) -> FaultSpec:
    return native_spec(name, rule, summary, f"fault.{name}", inject, protocol="stream", **more)


SPECS = (
    _spec(
        "stream-reader-stopped",
        "stuck-consumer",
        "a reader of a stream reads 100 messages and asks for no more; 20 a second are published",
        _behind("stream-reader-stopped", reads=0.0, most=100),
        also=("stream-unbounded",),
    ),
    _spec(
        "stream-reader-slow",
        "slow-consumer",
        "a reader of a stream reads 4 messages a second of 20",
        _behind("stream-reader-slow", reads=_SLOW),
        also=("stream-unbounded",),
    ),
    _spec(
        "stream-retention-loss",
        "stream-retention-loss",
        "retention deletes messages of a stream before a slow reader gets to them",
        _behind(
            "stream-retention-loss",
            rate=100,
            size=_BYTES,
            reads=_SLOW,
            arguments={"x-max-length-bytes": _RETAINED, "x-stream-max-segment-size-bytes": _SEGMENT},
        ),
        also=("slow-consumer", "stuck-consumer"),
    ),
    _spec(
        "stream-fed-for-ever",
        "stream-unbounded",
        "a client of the stream protocol publishes 2 MB a second to a stream without retention",
        _fill,
        also=("disk-trending-full",),
    ),
    _spec(
        "stream-deduplication",
        "stream-deduplication",
        "a named publisher of a stream begins with the same publishing ids after each restart",
        _repeat_ids,
    ),
    _spec(
        "stream-connection-leak",
        "connection-leak",
        "a client of the stream protocol opens two connections a second and closes none",
        _leak,
        subject=Subject(kind="connection", name="fault-stream-connection-leak"),
        one_shot=False,
    ),
    _spec(
        "stream-connection-churn",
        "connection-churn",
        "five workers that use the stream protocol end after 8 s each, and start again",
        _churn,
        subject=Subject(kind="connection", name="fault-stream-connection-churn"),
        apart=True,
    ),
)
