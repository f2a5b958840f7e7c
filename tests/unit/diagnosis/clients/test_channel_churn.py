import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import churning, looping, reconnecting, steady
from tests.unit.diagnosis.pictures import PEER, film, found, look, only, told


def clean(t, rate=15.0, **more):
    """A channel for each publish, closed by the client."""
    return looping(t, rate=rate, sent=28, **more)


def refused(t):
    """A request that the broker refuses with a text of 100 bytes, which no other rule knows."""
    return looping(t, sent=135, received=70)


def test_channels_that_the_broker_closes_are_told_early_and_warned_of_after_three_minutes():
    """With the client, how fast, and the length of the error."""
    early = only(look(film(refused, until=20)))
    late = only(look(film(refused, until=200)))

    assert ("channel-churn", "info", PEER) == (early.rule, early.severity, early.subject.name)
    assert "warning after 3 min" in early.summary
    assert "'billing' at 10.0.0.7:50001 (user 'guest')" in early.summary
    assert "text of 100 bytes" in told(early)
    assert "warning" == late.severity


def test_channels_that_the_client_closes_are_a_warning_when_they_are_many_for_long():
    """Ten a second for five minutes; fewer are a waste."""
    assert [("channel-churn", "info", PEER)] == found(look(film(clean, until=200)))
    assert [("channel-churn", "warning", PEER)] == found(look(film(clean, until=320)))
    assert [("channel-churn", "info", PEER)] == found(look(film(lambda t: clean(t, rate=4.0), until=320)))
    assert [] == found(look(film(lambda t: clean(t, rate=0.4), until=320)))


def test_what_each_channel_does_is_told_where_the_counts_are_its_own():
    """By the declarations of the cluster."""
    finding = only(look(film(lambda t: clean(t, declares=1), until=40)))

    assert "it declares a queue" in finding.cause


def test_a_loop_that_began_just_now_is_not_told():
    """A burst of a few seconds."""
    assert [] == found(look(film(lambda t: looping(t, began=52), until=60)))


@pytest.mark.parametrize("connections", [reconnecting], ids=["whole connections"])
def test_look_alikes_are_other_findings(connections):
    """Connections that come and go take their channels with them."""
    rules = {rule for rule, _, _ in found(look(film(connections, until=60)))}

    assert {"connection-churn"} == rules


def test_a_busy_cluster_without_churn_is_quiet():
    """However many packets its connections send."""

    def frame(t):
        there, consuming = steady(t)
        return {"overview": churning(t), "connections": (there,), "channels": (consuming,)}

    assert [] == found(look(film(frame, until=320)))


def test_two_looks_are_enough():
    """Six seconds apart."""
    window = film(refused, until=12, every=6, start=6)

    assert [("channel-churn", "warning", PEER)] == found(look(window, thresholds=Thresholds.one_shot()))
