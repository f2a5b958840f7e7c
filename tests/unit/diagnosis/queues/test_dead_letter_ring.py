"""A cycle of dead letters through several queues; consumers of two or more of them reject."""

from dataclasses import replace

import pytest

from ackscope.snapshot import Channel
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dead-letter-cycle"
TTL = 4.0
CLIENTS = {"visa.scan": "scanner", "visa.second": "second-look"}


def to(name, **more):
    """Arguments that dead-letter into one queue."""
    return {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name, **more}


def linked(name):
    """The consumer of a queue, its channel and its connection."""
    peer = f"10.0.1.{len(name)}:4100 -> 10.0.0.1:5672"
    of_queue = consumer(name, connection_name=peer, channel_name=f"{peer} (1)", tag=name)
    return of_queue, channel(f"{peer} (1)"), connection(peer, client_name=CLIENTS[name])


def ring(t, *, rate=9.0, redelivered=0.0, acked=0.0, waiting=None, published=1.5, fed=0.0):
    """`visa.scan` -> `visa.pause` -> `visa.second` -> `visa.scan`: what both consumers reject goes round.

    `redelivered` is the share that counts as redelivered; `waiting` is what waits in the delay queue.
    """
    again = round(redelivered * rate * t)
    scan = flowing(
        t, "visa.scan", published=published, rejected=rate, ready=int(published * t), arguments=to("visa.pause")
    )
    second = flowing(t, "visa.second", published=0.0, rejected=rate, acked=acked, arguments=to("visa.scan"))
    scan, second = (replace(each, stats=replace(each.stats, redeliver=again or None)) for each in (scan, second))
    stock = round(rate * TTL) if waiting is None else waiting
    pause = flowing(
        t,
        "visa.pause",
        published=fed,
        consumers=0,
        ready=stock,
        arguments=to("visa.second", **{"x-message-ttl": int(TTL * 1000)}),
    )
    if not fed:
        pause = replace(pause, stats=replace(pause.stats, publish=None, ack=None, deliver=None, deliver_get=None))
    made = frame(scan, second, pause)
    consumers, channels, connections = zip(*(linked(name) for name in CLIENTS), strict=True)
    counted = dict(zip(CLIENTS, (scan, second), strict=True))

    def with_counters(each: Channel, name: str) -> Channel:
        return replace(each, stats=counted[name].stats)

    own = tuple(with_counters(each, name) for each, name in zip(channels, CLIENTS, strict=True))
    return {**made, "consumers": consumers, "channels": own, "connections": connections}


def shot(until=90, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: ring(t, **fields), until=until))


@pytest.mark.parametrize("redelivered", [0.0, 0.9, 1.0], ids=["3.10", "most count as redelivered", "all do"])
def test_a_cycle_is_one_finding_with_all_that_reject(redelivered):
    """Whether a dead letter that comes back counts as redelivered depends on the version, and changes nothing."""
    verdict = shot(redelivered=redelivered)
    finding = one(RULE, verdict)

    assert ("visa.scan", "critical") == (finding.subject.name, finding.severity.value)
    assert ("scanner", "second-look") == finding.involved.clients
    assert {"visa.scan", "visa.pause", "visa.second"} == {each.name for each in finding.involved.queues}
    assert [] == of("requeue-loop", verdict)
    assert "consumers of 'visa.second' reject them again on that path" in text(finding).summary


@pytest.mark.parametrize("rate", [3.0, 40.0])
def test_a_cycle_without_new_messages_is_a_warning_also_where_all_count_as_redelivered(rate):
    """Nobody waits for messages that fail for good; that new ones are not processed is worse."""
    verdict = shot(redelivered=1.0, published=0.0, rate=rate)

    assert [("warning", "visa.scan")] == of(RULE, verdict)
    assert [] == of("requeue-loop", verdict)


def test_what_one_queue_of_the_cycle_acknowledges_is_progress():
    """So it is no more than a warning."""
    assert [("warning", "visa.scan")] == of(RULE, shot(acked=0.5))


@pytest.mark.parametrize(
    ("fields", "cycles"),
    [({"waiting": 0}, 0), ({"fed": 9.0}, 0), ({"waiting": 3}, 1)],
    ids=["none waits", "clients feed the delay", "few go round, and most are requeued"],
)
def test_requeued_messages_do_not_reach_the_delay_queue(fields, cycles):
    """The settings lead round, but the messages stay between queue and consumer."""
    verdict = shot(redelivered=1.0, published=0.0, **fields)

    assert cycles == len(of(RULE, verdict))
    assert {"visa.scan", "visa.second"} == {name for _, name in of("requeue-loop", verdict)}


def test_two_cycles_are_two_findings():
    """Each has its own queues."""

    def both(t):
        made = ring(t)
        other = flowing(t, "mail.in", published=0.0, rejected=5.0, arguments=to("mail.later"))
        later = queue("mail.later", consumers=0, messages_ready=5, arguments=to("mail.in", **{"x-message-ttl": 1000}))
        return {**made, "queues": (*made["queues"], other, later)}

    assert {"visa.scan", "mail.in"} == {name for _, name in of(RULE, look(film(both, until=90)))}


def test_a_loop_is_found_also_where_settings_are_unknown():
    """Without a management API no queue tells where it dead-letters, and messages may have been requeued."""

    def unknown(t):
        made = ring(t, redelivered=1.0)
        return {**made, "queues": tuple(replace(each, settings_known=False, arguments={}) for each in made["queues"])}

    verdict = look(film(unknown, until=90))

    assert {"visa.scan", "visa.second"} == {name for _, name in of("requeue-loop", verdict)}
    assert [] == of(RULE, verdict)
