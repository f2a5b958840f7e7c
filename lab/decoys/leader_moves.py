"""Leaders of quorum queues that move to other nodes under constant traffic, as in a rolling upgrade."""

import time

from ackscope.errors import BrokerError
from ackscope.findings import Subject
from lab.amqp import publish
from lab.decoys.traffic import consume
from lab.faults.fault import Fault, FaultSpec

QUEUE = "fault.decoy.leader-moves"
_EVERY = 20.0


def inject(fault: Fault) -> None:
    """Publish and consume at a constant rate; move the leader every 20 s."""
    fault.make_queue(QUEUE, {"x-queue-type": "quorum"})
    publisher = fault.connect("decoy-leader-publisher").channel()
    publisher.confirm_delivery()
    consume(fault.connect("decoy-leader-consumer"), QUEUE)
    due, target = time.monotonic(), 0
    announced = False
    for _ in fault.ticks(0.2):
        publish(publisher, QUEUE)
        if time.monotonic() < due:
            continue
        target = (target + 1) % len(fault.lab.nodes)
        _move(fault, target)
        due = time.monotonic() + _EVERY
        if not announced:
            fault.announce()
            announced = True


def _move(fault: Fault, target: int) -> None:
    node = fault.lab.nodes[target].name
    try:
        fault.lab.ctl(
            0,
            "eval",
            f"rabbit_quorum_queue:transfer_leadership(element(2, rabbit_amqqueue:lookup("
            f'rabbit_misc:r(<<"/">>, queue, <<"{QUEUE}">>))), \'{node}\').',
        )
    except BrokerError:
        # The node is already the leader, or an election is in progress: try again at the next move.
        return


SPEC = FaultSpec(
    name="decoy.leader-moves",
    rule="",
    summary="the leader of a quorum queue moves from node to node, under constant traffic",
    subject=Subject(kind="queue", name=QUEUE),
    inject=inject,
    nodes=3,
    brokers=("4.0", "4.3"),
)
