"""The difference between the clock of a broker and ours."""

import time
from email.utils import formatdate

import pytest

from ackscope.snapshot import Channel
from exporter.broker.clock_offset import ClockOffset
from exporter.broker.reader import BrokerReader
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import serve
from tests.unit.exporter.made import SetClock

NOW = 1_800_000_000.0
STARTED = SetClock().now().wall - SetClock().now().mono
"""When our monotonic clock began."""


def observed(*responses):
    """What is known after responses, given as (seconds that the broker is ahead, our time, duration)."""
    offset, found = ClockOffset(SetClock()), None
    for ahead, at, took in responses:
        offset.record({"date": formatdate(at + took / 2 + ahead, usegmt=True)}, at - STARTED, at + took - STARTED)
        found = offset.seconds
    return found


@pytest.mark.parametrize("ahead", [0.0, 0.9, -0.9])
def test_a_small_difference_is_none(ahead):
    """A date has whole seconds."""
    assert 0.0 == observed(*((ahead, NOW + 5.3 * number, 0.01) for number in range(20)))


@pytest.mark.parametrize("ahead", [900.0, -900.0, 30.0, -7.0])
def test_a_difference_is_found_within_two_seconds(ahead):
    """From the first response on; it does not change while it fits."""
    assert abs(observed((ahead, NOW, 0.01)) - ahead) <= 2.0
    assert observed((ahead, NOW, 0.01)) == observed(*((ahead, NOW + 5.3 * number, 0.01) for number in range(20)))


def test_slow_responses_do_not_widen_what_is_known():
    """A response that took 10 s says little."""
    assert abs(observed((60.0, NOW, 0.01), (60.0, NOW + 10, 10.0)) - 60.0) <= 2.0


def test_a_clock_that_is_set_is_noticed_at_once():
    """What was known of the broker's before does not count."""
    assert abs(observed((900.0, NOW, 0.01), (0.0, NOW + 5, 0.01))) <= 2.0


@pytest.mark.parametrize("jump", [7200.0, -7200.0, 20.0])
def test_if_our_own_clock_is_set_the_difference_is_right_at_once(jump):
    """Without another response, and so that a channel which became idle a minute ago is idle for a minute."""
    clock = SetClock()
    offset, now = ClockOffset(clock), clock.now()
    offset.record({"date": formatdate(now.wall, usegmt=True)}, now.mono, now.mono + 0.01)

    assert 0.0 == offset.seconds

    clock.mono, clock.jumped = now.mono + 1.0, jump
    (idle,) = offset.in_our_time("channels", (Channel(name="a", idle_since=now.wall - 60.0),))

    assert abs(offset.seconds + jump) <= 2.0
    assert abs(clock.now().wall - idle.idle_since - 61.0) <= 2.0

    clock.jumped = 0.0

    assert 0.0 == offset.seconds


@pytest.mark.parametrize(
    "headers", [{}, {"date": "yesterday"}, {"date": formatdate(NOW + 900, usegmt=True), "age": "60"}]
)
def test_without_a_date_of_the_broker_nothing_is_known(headers):
    """None, damaged, or that of a response in a cache."""
    offset = ClockOffset()
    offset.record(headers, 100.0, 100.01)

    assert offset.seconds is None
    assert ("as", "read") == offset.in_our_time("channels", ("as", "read"))


def dated(body, ahead):
    """A route whose clock is ahead of ours."""

    def answer(request):
        request.send_response_only(200)
        request.send_header("Date", formatdate(time.time() + ahead, usegmt=True))
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    return answer


def test_times_of_the_broker_are_read_by_our_clock():
    """When a channel became idle; not its other fields."""
    idle = b'[{"name": "a", "idle_since": "2027-01-15 08:00:00"}, {"name": "b"}]'

    def channels(ahead):
        with serve({"/api/channels": dated(idle, ahead)}) as server:
            reader = BrokerReader(ManagementSettings(url=server.url), SetClock())
            try:
                return reader.read("channels").value
            finally:
                reader.close()

    (same, busy), (behind, _) = channels(0.0), channels(-600.0)

    assert (NOW, None) == (same.idle_since, busy.idle_since)
    assert abs(behind.idle_since - NOW - 600.0) <= 2.0
