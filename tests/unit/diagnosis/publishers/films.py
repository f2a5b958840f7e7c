"""Films of publishers: what the broker reports about a publisher at each second."""

from ackscope.findings import flat
from ackscope.topology import Exchange
from tests.unit.diagnosis.pictures import channel, connection, queue, stats

PEER = "10.0.0.9:50002 -> 10.0.0.1:5672"
CHANNEL = f"{PEER} (1)"


def publisher(t, *, rate=10.0, before=1000, peer=PEER, counters=None, **fields):
    """Return a channel that publishes at this rate; in confirm mode everything is confirmed."""
    published = int(before + rate * t)
    confirmed = {"confirm": published} if fields.get("confirm", True) else {}
    return channel(
        f"{peer} (1)",
        **{"confirm": True, "consumer_count": 0, **fields},
        stats=stats(publish=published, **confirmed, **(counters or {})),
    )


def shop(peer=PEER, **fields):
    """The connection of the application `shop`."""
    return connection(peer, **{"client_name": "shop", "protocol": "AMQP 0-9-1", "user": "shopper", **fields})


def exchange(name="orders.in", *, received=0, routed=0, **fields):
    """Return a direct exchange with these counters; a counter at 0 is absent, as in the broker's answer."""
    counters = {key: value for key, value in (("publish_in", received), ("publish_out", routed)) if value}
    return Exchange(name=name, stats=stats(**counters), **{"vhost": "/", "type": "direct", "durable": True, **fields})


def busy_queue(t, rate=10.0, **fields):
    """A queue that is published to and consumed from."""
    number = int(1000 + rate * t)
    return queue(stats=stats(publish=number, deliver=number, ack=number), **fields)


def of(verdict, rule):
    """Severity and subject of each finding of a rule, causes and consequences."""
    return [(each.severity.value, each.subject.kind, each.subject.name) for each in findings(verdict, rule)]


def findings(verdict, rule):
    """The findings of a rule."""
    return [each for each in flat(verdict.findings) if each.rule == rule]


def facts(verdict, rule):
    """Return the facts of the first finding of a rule."""
    return findings(verdict, rule)[0].facts


def suppressed(verdict, rule):
    """Return what a rule suppressed, and why."""
    return [(each.subject.name, each.reason) for each in verdict.suppressed if each.rule == rule]
