import pytest

from exporter.broker.client import ManagementClient
from exporter.broker.cost_model import MAX_RTT_SECONDS, MIN_REQUEST_SECONDS, RttEstimator
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, serve


def recorded(*answers, at=0.0):
    """A rtt of answers of these seconds."""
    rtt = RttEstimator()
    for seconds in answers:
        rtt.record(seconds, at)
    return rtt


def test_the_quickest_answer_tells_the_way():
    """All others took longer for what they had to do."""
    assert recorded(*[0.9, 0.11, 0.3] * 4).seconds == pytest.approx(0.11 - MIN_REQUEST_SECONDS)


def test_a_broker_nearby_has_none():
    """Its smallest answers take less than any request does."""
    assert recorded(*[0.0007, 0.02] * 8).seconds == 0


def test_a_broker_that_is_slow_is_not_far_away():
    """What its answers take beyond any rtt is its own, and makes it be asked less often."""
    assert recorded(*[4.0, 5.0] * 8).seconds == MAX_RTT_SECONDS


def test_of_few_answers_nothing_is_concluded():
    """All of them may have been dear."""
    assert recorded(0.5, 0.4, 0.6).seconds == 0


def test_what_was_quick_minutes_ago_does_not_count():
    """The rtt may have become longer; the last minute and the one before count."""
    rtt = recorded(*[0.1] * 12)
    for moment in (61, 122, 183):
        rtt.record(0.3, moment)

    assert rtt.seconds == pytest.approx(0.3 - MIN_REQUEST_SECONDS)


def test_a_pause_makes_nothing_of_old_answers():
    """Nor does one that was long."""
    rtt = recorded(*[0.1] * 12)
    rtt.record(0.3, 500)

    assert rtt.seconds == pytest.approx(0.3 - MIN_REQUEST_SECONDS)


def test_the_way_is_no_cost():
    """What a request costs is what it takes beyond the rtt, which all answers of a broker tell."""

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
