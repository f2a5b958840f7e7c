"""Clients that open a channel, take messages, and lose or close the channel again and again."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from tests.unit.diagnosis.clients.loops import loop, looping, turns
from tests.unit.diagnosis.consumers.results import found
from tests.unit.diagnosis.pictures import PEER, channel, connection, consumer, film, look, queue, stats, text

QUORUM = {"type": "quorum", "arguments": {"x-delivery-limit": 5}}


def cycling(t, *, rate=1.0, takes=30, acks=4, again=22, drops=0, packets=12, sent=8000, name="reports.todo", **of):
    """A client opens a channel in each cycle, is sent messages, acknowledges some, and the rest comes back.

    Of the messages that come back, some reach the delivery limit (`drops`).
    """
    done = turns(t, rate, 0.0)
    counters = {"deliver": takes * done, "deliver_get": takes * done, "ack": acks * done, "redeliver": again * done}
    total = stats(deliver_get=int(10 * t) + takes * done, ack=int(10 * t) + acks * done, redeliver=again * done)
    picture = looping(t, rate=rate, packets=packets, sent=sent, received=850, stats=total)
    work = queue(
        name, messages_ready=20, consumers=0, stats=stats(publish=(acks + drops) * done + 20, **counters), **of
    )
    return {**picture, "queues": (work,)}


def of(result, rule):
    """The only finding of a rule, also if it is a consequence; None without one."""
    findings = [each for each in flat(result.findings) if each.rule == rule]
    assert len(findings) < 2
    return findings[0] if findings else None


@pytest.mark.parametrize(
    ("of_cycle", "name"),
    [({}, "reports.todo"), ({"rate": 5.0, "takes": 12, "acks": 1, "again": 11}, "a.b1"), ({"acks": 20}, "orders")],
)
def test_a_client_that_acknowledges_some_and_closes_its_channel_is_not_accused_of_wrong_acknowledgements(
    of_cycle, name
):
    """Refused ones are not counted. What it returns is reported, and its loop beneath."""
    result = look(film(lambda t: cycling(t, name=name, **of_cycle), until=120))
    finding = of(result, "consumer-flapping")

    assert "bad-ack-loop" not in {rule for rule, _, _ in found(result)}
    assert (name, ["billing"]) == (finding.subject.name, finding.facts["clients"])
    assert "'billing' keeps its connection, but its channels open and close" in text(finding).cause
    assert "channel-churn" not in {each.rule for each in result.findings}


def test_messages_that_it_returns_until_the_delivery_limit_are_lost_and_it_is_named():
    """Nothing crashes: its connection stays."""
    result = look(film(lambda t: cycling(t, drops=2, **QUORUM), until=120))
    finding = of(result, "poison-drop")
    rendered = text(finding)

    assert ["poison-drop"] == [each.rule for each in result.findings if "reports.todo" in str(each.involved)]
    assert ("critical", ["billing"]) == (finding.severity, finding.facts["clients"])
    assert ((PEER,), ("billing",)) == (finding.involved.connections, finding.involved.clients)
    assert "'billing' keeps its connection" in rendered.cause
    assert "crash" not in rendered.cause + " ".join(step.text for step in rendered.steps)
    assert {"consumer-flapping", "channel-churn"} <= {each.rule for each in finding.consequences}


@pytest.mark.parametrize("until", [30, 40])
def test_its_loop_is_a_consequence_from_the_start(until):
    """Before the returns have lasted for long enough to be a finding of their own."""
    result = look(film(lambda t: cycling(t, rate=2.0, drops=3, **QUORUM), until=until))

    assert of(result, "poison-drop")
    assert ["poison-drop"] == [each.rule for each in result.findings]
    assert of(result, "channel-churn")


def test_the_risk_of_a_missing_dead_letter_exchange_is_shown_under_the_loss():
    """If it is about this queue alone; it is reported for queues with a consumer."""

    def frame(t):
        picture = cycling(t, drops=2, **QUORUM)
        return {**picture, "queues": tuple(replace(each, consumers=1) for each in picture["queues"])}

    result = look(film(frame, until=60))

    assert ["poison-drop"] == [each.rule for each in result.findings]
    assert of(result, "quorum-queue-without-dlx")


def test_another_client_of_the_queue_may_return_them():
    """Two clients come into question, so none is named as the one whose channels end."""

    def frame(t):
        picture = cycling(t, drops=2, **QUORUM)
        other = "10.0.0.5:50005 -> 10.0.0.1:5672"
        return {
            **picture,
            "consumers": (consumer("reports.todo", connection_name=other, channel_name=f"{other} (1)"),),
            "channels": (*picture["channels"], channel(f"{other} (1)")),
            "connections": (*picture["connections"], connection(other, client_name="viewer")),
        }

    assert of(look(film(frame, until=120)), "poison-drop").facts["channel_loop"] is None


def test_another_queue_that_redelivers_leaves_it_open():
    """The counters of the loop are those of the whole cluster."""

    def frame(t):
        picture = cycling(t, drops=2, **QUORUM)
        done = stats(publish=20, deliver=int(5 * t), redeliver=int(5 * t))
        return {**picture, "queues": (*picture["queues"], queue("others", messages_ready=20, stats=done))}

    assert of(look(film(frame, until=120)), "poison-drop").facts["channel_loop"] is None


def test_two_loops_of_the_virtual_host_leave_it_open():
    """Either may return the messages."""

    def frame(t):
        picture = cycling(t, drops=2, **QUORUM)
        other = loop(t, rate=1.0, packets=12, sent=8000, received=850, name="10.0.0.8:1 -> b", client_name="viewer")
        return {**picture, "connections": (*picture["connections"], other)}

    assert of(look(film(frame, until=120)), "poison-drop").facts["channel_loop"] is None


def test_without_any_acknowledgement_it_is_either():
    """The broker closes the channel over an acknowledgement, or the client does before it acknowledges."""
    finding = of(look(film(lambda t: cycling(t, acks=0, takes=6, again=6, rate=3.0), until=120)), "bad-ack-loop")
    rendered = text(finding)

    assert not finding.facts["proven"]
    assert "Either it acknowledges a delivery that the channel does not know" in rendered.cause
    assert "or it closes the channel itself before it acknowledges anything" in rendered.cause
    assert (6.0, 0.0) == tuple(round(finding.facts[f"{what}_per_cycle"], 1) for what in ("redelivered", "acked"))


def test_the_length_of_the_error_proves_it():
    """Also if some messages are acknowledged."""
    sent = 16 + 12 + 12 + 19 + len("PRECONDITION_FAILED - unknown delivery tag 9")
    finding = of(look(film(lambda t: cycling(t, rate=5.0, packets=4, sent=sent), until=120)), "bad-ack-loop")

    assert finding.facts["proven"]
    assert "The broker closes them with an error of this length" in text(finding).cause
