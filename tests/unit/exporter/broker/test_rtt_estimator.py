import pytest

from exporter.broker.client import ManagementClient
from exporter.broker.cost_model import MAX_RTT_SECONDS, MIN_REQUEST_SECONDS, RttEstimator
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve


def recorded(*answers, at=0.0):
    """An estimator with these response times in seconds."""
    rtt = RttEstimator()
    for seconds in answers:
        rtt.record(seconds, at)
    return rtt


def test_the_fastest_answer_is_the_round_trip():
    """All others took longer because of the work they did."""
    assert recorded(*[0.9, 0.11, 0.3] * 4).seconds == pytest.approx(0.11 - MIN_REQUEST_SECONDS)


def test_a_nearby_broker_has_no_round_trip():
    """Its fastest answers take less than any request."""
    assert recorded(*[0.0007, 0.02] * 8).seconds == 0


def test_the_round_trip_is_bounded():
    """Beyond the bound the time is the broker's own, and it is polled less often."""
    assert recorded(*[4.0, 5.0] * 8).seconds == MAX_RTT_SECONDS


def test_few_answers_give_no_estimate():
    """All of them may have been expensive."""
    assert recorded(0.5, 0.4, 0.6).seconds == 0


def test_old_samples_are_forgotten():
    """The round trip may have grown; the last minute and the one before count."""
    rtt = recorded(*[0.1] * 12)
    for moment in (61, 122, 183):
        rtt.record(0.3, moment)

    assert rtt.seconds == pytest.approx(0.3 - MIN_REQUEST_SECONDS)


def test_old_samples_are_forgotten_after_a_pause():
    """However long it was."""
    rtt = recorded(*[0.1] * 12)
    rtt.record(0.3, 500)

    assert rtt.seconds == pytest.approx(0.3 - MIN_REQUEST_SECONDS)


def test_the_round_trip_is_not_a_cost():
    """A request costs what it takes beyond the round trip."""

    class Far(RttEstimator):
        seconds = 30.0

    with serve({"/api/overview": json({})}) as server:
        settings = ManagementSettings(url=server.url)
        near, distant = ManagementClient(settings), ManagementClient(settings, rtt=Far())
        for client in (near, distant):
            client.get("/api/overview")
            client.close()

    assert near.seconds > 0
    assert distant.seconds == 0
