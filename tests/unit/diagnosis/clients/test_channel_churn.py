from dataclasses import replace

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, steady
from tests.unit.diagnosis.pictures import PEER, evidence, film, found, full_text, look, only, queue


def clean(t, rate=15.0, **more):
    """A channel for each publish, closed by the client."""
    return looping(t, rate=rate, sent=28, **more)


def refused(t):
    """A request that the broker refuses with a text of 100 bytes, which fits no other rule."""
    return looping(t, sent=135, received=70)


def test_channels_that_the_broker_closes_are_a_warning_after_three_minutes():
    """With the client, the rate, and the length of the error."""
    early = only(look(film(refused, until=20)))
    late = only(look(film(refused, until=200)))

    assert ("channel-churn", "info", PEER) == (early.rule, early.severity, early.subject.name)
    expected = {"client": "billing", "peer": "10.0.0.7:50001", "user": "guest", "by_broker": True, "cycle_rate": 5.0}
    assert expected == {key: early.facts[key] for key in expected}
    assert ("early", 180.0) == (early.certainty, early.facts["warning_after_seconds"])
    assert 100 == evidence(early, "loop_error").value
    assert (PEER,) == early.involved.connections
    assert ("warning", "likely") == (late.severity, late.certainty)


def test_channels_that_the_client_closes_are_a_warning_when_they_are_many_for_long():
    """Ten a second for five minutes; slower loops are information."""
    assert [("channel-churn", "info", PEER)] == found(look(film(clean, until=200)))
    assert [("channel-churn", "warning", PEER)] == found(look(film(clean, until=320)))
    assert [("channel-churn", "info", PEER)] == found(look(film(lambda t: clean(t, rate=4.0), until=320)))
    assert [] == found(look(film(lambda t: clean(t, rate=0.4), until=320)))


def test_what_each_channel_does_is_shown_where_no_other_client_loops():
    """The cluster's count of declarations shows it."""
    finding = only(look(film(lambda t: clean(t, declares=1), until=40)))

    assert ["declare"] == finding.facts["activities"]


@pytest.mark.parametrize(("rate", "sent"), [(12.0, 135), (15.0, 180)])
def test_a_queue_in_each_cycle_hides_who_closes_the_channel(rate, sent):
    """Requests with a queue of their own for the reply."""

    def frame(t):
        parts, cycles = looping(t, rate=rate, sent=sent, received=210), int(rate * t)
        churn = parts["overview"].churn | {
            "queue_declared": 40 + cycles,
            "queue_created": 30 + cycles,
            "queue_deleted": 20 + cycles,
        }
        return {**parts, "overview": replace(parts["overview"], churn=churn)}

    finding = next(each for each in look(film(frame, until=60)).findings if each.rule == "channel-churn")

    assert None is finding.facts["by_broker"]


@pytest.mark.parametrize(
    ("name", "version", "fits"),
    [
        ("events.stream", "4.3.6", True),
        ("events.stream", "3.10.8", True),
        ("a.b", "4.3.6", True),
        ("c", "4.3.6", False),
    ],
)
def test_a_stream_that_refuses_consumers_without_a_prefetch_is_the_probable_cause(name, version, fits):
    """The text has the name of the stream, and another form before 4.0."""
    whole = len("PRECONDITION_FAILED - consumer prefetch count is not set for ") + len(name)
    whole += len("stream queue '' in vhost '/'") if version == "4.3.6" else len("'queue '' in vhost '/''")
    length = whole if fits else 200

    def frame(t):
        streams = (queue(name, type="stream", consumers=0), queue("work", consumers=1))
        return {**looping(t, rate=0.5, sent=16 + 19 + length, received=97, version=version), "queues": streams}

    finding = only(look(film(frame, until=60)))

    assert ([name] if fits else []) == finding.facts["streams"]
    assert fits is ("basic.qos" in full_text(finding))


def test_a_loop_that_has_just_begun_is_not_reported():
    """A burst of a few seconds."""
    assert [] == found(look(film(lambda t: looping(t, began=52), until=60)))


@pytest.mark.parametrize("connections", [reconnecting], ids=["whole connections"])
def test_lookalikes_are_other_findings(connections):
    """Connections that come and go take their channels with them."""
    rules = {rule for rule, _, _ in found(look(film(connections, until=60)))}

    assert {"connection-churn"} == rules


def test_a_busy_cluster_without_churn_has_no_finding():
    """The number of packets of its connections does not matter."""

    def frame(t):
        there, consuming = steady(t)
        return {"overview": churning(t), "connections": (there,), "channels": (consuming,)}

    assert [] == found(look(film(frame, until=320)))


def test_two_snapshots_are_enough():
    """Six seconds apart."""
    window = film(refused, until=12, every=6, start=6)

    assert [("channel-churn", "warning", PEER)] == found(look(window, thresholds=Thresholds.as_if_lasting()))
