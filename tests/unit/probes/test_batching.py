"""Batching estimates from simulated bursts with known sync times."""

from bisect import bisect_right
from random import Random

import pytest

from ackscope.records import BatchingKind, Outcome
from probes.batching import LEAST_BURSTS, BurstWindow, estimate, syncs_first
from probes.bursts import Burst, BurstJoiner
from probes.confirm_ledger import Settled
from probes.schedule import Schedule


def sent_times(rate, seconds, seed=1):
    """Return the times at which a probe would send."""
    return Schedule(rate, 100.0, Random(seed)).take(100.0 + seconds, 10**6)


def joined(settled_at, *, full=False):
    """Return bursts of `(sent, settled)` pairs; messages settled at the same time came in one frame."""
    joiner, bursts = BurstJoiner(), []
    frames = {}
    for seq, (sent, at) in enumerate(settled_at, 1):
        frames.setdefault(at, []).append(Settled(seq, sent, sent, at, Outcome.ACKED))
    for at in sorted(frames):
        if full:
            joiner.full()
        bursts.append(joiner.frame(at, len(frames[at]), multiple=True, settled=frames[at]))
    bursts.append(joiner.flush(1e9))
    return [burst for burst in bursts if burst is not None]


def gated(sent, sync, *, trip=0.0005, most=10**6):
    """Simulate a broker that syncs all messages that arrived during the previous sync, at most `most` at once."""
    done, free, position = [], 0.0, 0
    while position < len(sent):
        start = max(free, sent[position])
        last = min(bisect_right(sent, start), position + most)
        free = start + (sync() if callable(sync) else sync)
        done += [(time, free + trip) for time in sent[position:last]]
        position = last
    return done


@pytest.mark.parametrize("rate", [50.0, 200.0, 1000.0])
@pytest.mark.parametrize("sync", [0.05, 0.1, 0.2, 0.3])
def test_a_slow_sync_is_found(sync, rate):
    """The estimate is within a few percent, names the sync, and has high confidence."""
    found = estimate(joined(gated(sent_times(rate, 15.0), sync)), rate=rate, fsync=True)

    assert BatchingKind.SYNC is found.kind
    assert found.interval == pytest.approx(sync, rel=0.05)
    assert sync <= found.floor <= sync + 0.001 + 1 / rate
    assert found.slope == pytest.approx(1.0, abs=0.05)
    assert found.confidence > 0.6
    assert "one fsync takes about that long" in found.because


def test_syncs_that_vary_are_found_with_less_confidence():
    """A real disk is not a clock."""
    random, sent = Random(3), sent_times(200.0, 30.0)
    done = gated(sent, lambda: random.uniform(0.07, 0.13))
    found = estimate(joined(done), rate=200.0, fsync=True)
    steady = estimate(joined(gated(sent, 0.1)), rate=200.0, fsync=True)

    assert BatchingKind.SYNC is found.kind
    assert found.interval == pytest.approx(0.1, rel=0.15)
    assert found.confidence < steady.confidence


def test_a_flush_split_in_two_bursts_does_not_halve_the_interval():
    """A busy broker writes its acks in two parts; the smaller part counts less."""
    whole = gated(sent_times(200.0, 15.0), 0.1)
    done = [(sent, at + (0.004 if index % 6 == 5 else 0.0)) for index, (sent, at) in enumerate(whole)]
    found = estimate(joined(done), rate=200.0, fsync=True)

    assert BatchingKind.SYNC is found.kind
    assert found.interval == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("rate", [5.0, 50.0, 200.0, 1000.0, 5000.0])
@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_disk_is_never_called_slow(rate, seed):
    """Syncs take 1 ms, and client and broker sometimes stall for tens of ms."""
    random = Random(seed)
    done, stalled = [], 0.0
    for sent, at in gated(sent_times(rate, 12.0, seed), 0.001):
        if random.random() < 0.01:
            stalled = at + random.uniform(0.005, 0.08)
        done.append((sent, max(at, stalled)))
    found = estimate(joined(done), rate=rate, fsync=True)

    assert found.kind is not BatchingKind.SYNC
    assert found.interval is None


def test_each_message_by_itself_is_unbatched():
    """This also holds for a distant broker with many messages in flight."""
    done = [(sent, sent + 0.2) for sent in sent_times(200.0, 10.0)]

    assert BatchingKind.UNBATCHED is estimate(joined(done), rate=200.0, fsync=True).kind


def test_a_timer_is_not_a_sync():
    """The groups are as regular and as large, but the youngest message of a group does not wait."""
    done = [(sent, (int(sent / 0.2) + 1) * 0.2) for sent in sent_times(200.0, 15.0)]
    found = estimate(joined(done), rate=200.0, fsync=True)

    assert BatchingKind.UNKNOWN is found.kind
    assert "a timer" in found.because


def test_the_probes_own_bound_is_distinguished():
    """Groups of the probe's maximum in-flight size show nothing about the disk."""
    found = estimate(joined(gated(sent_times(200.0, 15.0), 0.1), full=True), rate=200.0, fsync=True)

    assert BatchingKind.WINDOW_LIMITED is found.kind
    assert found.interval is None


def test_a_bound_of_the_broker_is_distinguished():
    """It syncs 32 at once although 200 arrive during one sync, like a quorum queue for one channel."""
    done = gated(sent_times(1000.0, 15.0), 0.2, most=32)
    found = estimate(joined(done), rate=1000.0, fsync=True)

    assert BatchingKind.WINDOW_LIMITED is found.kind
    assert "limits the unconfirmed messages" in found.because


def test_scattered_bursts_are_no_batching():
    """The waits do not depend on when a message was sent."""
    random = Random(5)
    done = [
        (first + random.random(), first + 1 + random.choice((0.0, 0.35, 0.4)))
        for first in range(100, 115)
        for _ in range(40)
    ]
    found = estimate(joined(done), rate=40.0, fsync=True)

    assert found.kind is not BatchingKind.SYNC


def test_few_bursts_are_not_known():
    """The result names how many bursts are needed."""
    found = estimate(joined(gated(sent_times(200.0, 2.0), 0.2)), rate=200.0, fsync=True)

    assert BatchingKind.UNKNOWN is found.kind
    assert f"at least {LEAST_BURSTS} are needed" in found.because
    assert found.confidence == 0


def test_a_rate_too_low_to_tell_is_not_known():
    """There is one message per sync; the result says what a higher rate would show."""
    found = estimate(joined(gated(sent_times(3.0, 60.0), 0.2)), rate=3.0, fsync=True)

    assert BatchingKind.UNKNOWN is found.kind
    assert "batches cannot be seen" in found.because


def test_the_word_fsync_is_for_brokers_that_do():
    """A quorum queue always; a persistent message on a classic queue before 3.13; unknown versions never."""
    cases = {
        ("quorum", 2, "RabbitMQ 4.3.6"): True,
        ("quorum", 2, "RabbitMQ 3.10.8"): True,
        ("classic", 2, "RabbitMQ 3.10.8"): True,
        ("classic", 2, "RabbitMQ 3.13.0"): False,
        ("classic", 2, "RabbitMQ 4.0.5"): False,
        ("classic", 1, "RabbitMQ 3.10.8"): False,
        ("stream", 2, "RabbitMQ 3.10.8"): False,
        ("none", 2, "RabbitMQ 3.10.8"): False,
        ("quorum", 2, "LavinMQ 2.1.0"): False,
        ("quorum", 2, "RabbitMQ"): False,
        ("quorum", 2, ""): False,
    }

    assert cases == {case: syncs_first(*case) for case in cases}


def test_without_fsync_the_word_is_not_used():
    """The text then only mentions a write that all messages wait for."""
    found = estimate(joined(gated(sent_times(200.0, 15.0), 0.1)), rate=200.0, fsync=False)

    assert BatchingKind.SYNC is found.kind
    assert "does not fsync" in found.because


def test_no_sync_is_claimed_where_nothing_is_written_or_the_probe_itself_is_late():
    """Stalls of broker, network and client look alike, and a stream without writes cannot wait for one."""
    bursts = joined(gated(sent_times(200.0, 15.0), 0.1))
    transient = estimate(bursts, rate=200.0, fsync=False, writes=False)
    late = estimate(bursts, rate=200.0, fsync=True, own_error=0.05)

    assert {BatchingKind.UNKNOWN} == {transient.kind, late.kind}
    assert (None, None) == (transient.interval, late.interval)
    assert "nothing is written on this path before the confirm" in transient.because
    assert "the probe itself wakes up that late" in late.because


def test_the_window_forgets():
    """Only bursts within the window count; a one-shot run counts as a whole."""
    bursts = [Burst(float(at), 1, 0, 1, 1.0, 0.0) for at in range(100)]
    window, whole = BurstWindow(span=60.0), BurstWindow(span=None)
    for burst in bursts:
        window.add(burst)
        whole.add(burst)

    assert bursts[40:] == window.recent(100.0)
    assert bursts == whole.whole()
