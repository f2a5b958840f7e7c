"""policy-limit-loss: a policy whose pattern is too wide makes three queues drop their oldest messages.

Source: https://www.rabbitmq.com/docs/maxlength
"""

from urllib.parse import quote

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec
from lab.faults.queues.clients import reader, writer

POLICY = "fault-policy-limit-loss"
QUEUES = tuple(f"fault.policy-limit-loss.{name}" for name in ("bookings", "receipts", "stock"))
_MAX_LENGTH, _RATE, _TAKE_EVERY, _PROOF = 10, 8.0, 2.0, 40


def inject(fault: Fault) -> None:
    """Publish to each queue with confirms, far faster than its consumer acks; no message is nacked."""
    for name in QUEUES:
        fault.make_queue(name)
    path = f"/api/policies/{quote(fault.address.vhost, safe='')}/{POLICY}"
    pattern, limit = r"^fault\.policy-limit-loss\.", {"max-length": _MAX_LENGTH}
    fault.ask("PUT", path, {"pattern": pattern, "definition": limit, "apply-to": "queues", "priority": 5})
    fault.later(lambda: fault.ask("DELETE", path))
    channel, takers = writer(fault, QUEUES[0]), [reader(fault, name, every=_TAKE_EVERY, prefetch=1) for name in QUEUES]
    announced = False
    for sent, _ in enumerate(fault.ticks(1 / _RATE)):
        for name, taker in zip(QUEUES, takers, strict=True):
            publish(channel, name)
            taker.work()
        # The queues and the consumers cannot hold more, so the rest was dropped.
        if not announced and sent > max(taker.acked for taker in takers) + 1 + _MAX_LENGTH + _PROOF:
            fault.announce()
            announced = True


SPEC = FaultSpec(
    name="policy-limit-loss",
    rule="policy-limit-loss",
    summary="a policy for three queues limits them to 10 messages; they drop the oldest ones",
    subject=Subject(kind="policy", name=POLICY),
    inject=inject,
    also=("maxlen-drop-head",),
)
