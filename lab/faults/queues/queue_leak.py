"""queue-leak: a client declares two durable queues a second with new names, and deletes none."""

from ackscope.findings import Subject
from lab.faults.fault import Fault, FaultSpec

PREFIX = "fault.queue-leak."
_RATE, _PROOF, _MOST = 2.0, 10, 1000


def inject(fault: Fault) -> None:
    """Declare queues, at most 1,000."""
    channel = fault.connect("fault-queue-leak").channel()
    made: list[str] = []
    fault.later(lambda: _delete(fault, made))
    for _ in fault.ticks(1 / _RATE):
        if len(made) < _MOST:
            made.append(f"{PREFIX}{len(made):04d}")
            channel.queue_declare(made[-1], durable=True, arguments={"x-queue-type": "classic"})
        if len(made) == _PROOF:
            fault.announce()


def _delete(fault: Fault, names: list[str]) -> None:
    with fault.briefly("fault-cleanup") as channel:
        for name in names:
            channel.queue_delete(name)


SPEC = FaultSpec(
    name="queue-leak",
    rule="queue-leak",
    summary="a client declares 2 new queues a second and deletes none",
    subject=Subject(kind="cluster", name=""),
    inject=inject,
)
