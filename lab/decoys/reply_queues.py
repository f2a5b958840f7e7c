"""Reply queues as they should be: deleted after the reply, expiring, or one for a client."""

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.fault import Fault, FaultSpec

_NAME = "fault.decoy.reply-queues"
_SESSIONS, _PROOF = 30, 10


def inject(fault: Fault) -> None:
    """Use a queue for each request in three right ways, and 30 queues of sessions that are pushed to now and then."""
    requester = fault.connect("decoy-reply-queues").channel()
    gateway = fault.connect("decoy-reply-queues-gateway").channel()
    sessions = []
    for _ in range(_SESSIONS):
        sessions.append(gateway.queue_declare("", exclusive=True).method.queue)
        gateway.basic_consume(sessions[-1], lambda *_: None, auto_ack=True)
    for number, _ in enumerate(fault.ticks(1 / 3)):
        name = requester.queue_declare("", exclusive=True).method.queue
        publish(requester, name)
        requester.basic_get(name, auto_ack=True)
        requester.queue_delete(name)
        brief = f"{_NAME}.{number}"
        requester.queue_declare(brief, auto_delete=True, arguments={"x-expires": 15_000})
        publish(gateway, sessions[number % 7])
        if number == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="decoy.reply-queues",
    rule="",
    summary="queues for one request each are deleted or expire, and sessions of a gateway have one each",
    subject=Subject(kind="vhost", name=""),
    inject=inject,
)
