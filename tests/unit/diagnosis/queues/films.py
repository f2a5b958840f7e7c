"""Films of queues with traffic: messages published, acknowledged and rejected per second."""

from ackscope.findings import flat
from ackscope.topology import Binding, Bindings, Exchange
from tests.unit.diagnosis.pictures import queue, stats


def flowing(t, name="orders", *, published=8.0, acked=0.0, rejected=0.0, ready=0, unacked=0, **fields):
    """A queue with this many messages per second published; consumers acknowledge and reject some of them.

    Messages that are neither acknowledged nor in the queue are lost.
    """
    delivered = int((acked + rejected) * t) + unacked
    counters = stats(publish=int(100 + published * t), ack=int(acked * t), deliver=delivered, deliver_get=delivered)
    return queue(name, messages_ready=ready, messages_unacked=unacked, stats=counters, **fields)


def binding(source, destination, key=""):
    """One binding of a queue in vhost `/`."""
    return Binding(vhost="/", source=source, destination=destination, destination_type="queue", routing_key=key)


def exchange(name, kind="fanout", **fields):
    """One exchange in vhost `/`."""
    return Exchange(vhost="/", name=name, type=kind, **fields)


def frame(*queues, exchanges=(), bindings=()):
    """The parts of a snapshot; bindings were read."""
    return {"queues": queues, "exchanges": tuple(exchanges), "bindings": Bindings(listed=tuple(bindings))}


def of(rule, verdict):
    """Severity and subject of the findings of one rule, consequences included."""
    return [(each.severity.value, each.subject.name) for each in flat(verdict.findings) if each.rule == rule]


def one(rule, verdict):
    """The only finding of a rule."""
    (finding,) = [each for each in flat(verdict.findings) if each.rule == rule]
    return finding
