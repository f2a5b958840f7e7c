import pytest

from ackscope.clock import Instant
from ackscope.records import StepRecord
from probes.identity import Identity
from probes.step_stats import Steps

WHO = Identity(
    probe="handshake",
    stream="handshake",
    queue_type="none",
    vhost="/",
    queue="",
    run_id="0" * 16,
    rate=0.2,
    payload_bytes=0,
    node="rabbit@one",
)


@pytest.fixture
def steps():
    """Return the steps of a stream with a window of one minute."""
    return Steps(WHO, span=60.0)


def test_failures_stay_in_the_attempts(steps):
    """A failed step has no duration, and its reason stays until a step succeeds."""
    steps.ok("tcp", 10.0, 0.002)
    steps.failed("tcp", 11.0, "connection refused")
    found = steps.summary(12.0)["tcp"]

    assert (2, 1, 1, "connection refused") == (found.attempts, found.failures, found.seconds.count, found.reason)

    steps.ok("tcp", 13.0, 0.002)

    assert steps.summary(14.0)["tcp"].reason is None


def test_clean_means_that_no_recent_step_failed(steps):
    """Before the first step it is unknown; a failure expires with the window."""
    assert steps.clean(0.0) is None

    steps.failed("tcp", 1.0, "refused")
    steps.ok("tcp", 2.0, 0.001)

    assert steps.clean(3.0) is False

    steps.ok("tcp", 100.0, 0.001)

    assert steps.clean(101.0) is True


def test_each_step_is_handed_on_once_with_its_wall_time(steps):
    """The monotonic start becomes seconds since 1970."""
    steps.failed("tls", 10.0, "no TLS on this port", seconds=0.5)
    now = Instant(wall=1_700_000_100.0, mono=110.0)

    assert [
        StepRecord(
            probe="handshake",
            stream="handshake",
            vhost="/",
            node="rabbit@one",
            run_id="0" * 16,
            at=1_700_000_000.0,
            step="tls",
            seconds=0.5,
            ok=False,
            reason="no TLS on this port",
        )
    ] == steps.take(now)
    assert [] == steps.take(now)
