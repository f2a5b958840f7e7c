from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.records import Batching, BatchingKind, Outcome
from probes.bursts import Burst
from probes.confirm_ledger import Settled
from probes.identity import Identity
from probes.recent_values import RecentValues
from probes.report import StreamReport, document, text
from probes.stream_stats import DeliveryCounts, MessageEntry, StreamStats


def report(
    latencies,
    *,
    outcomes=(),
    lag=0.0001,
    deliveries=None,
    reason=None,
    stream="quorum",
    expected=Outcome.ACKED,
    batching=None,
    steps=(),
    blocked=(),
):
    """Return the report of a run with these confirms, outcomes without confirm, and steps."""
    recent = RecentValues(span=None)
    recent.record(lag, 0.0)
    identity = Identity(
        probe="delivery" if deliveries else "confirm",
        stream=stream,
        queue_type="quorum",
        vhost="/",
        queue="q",
        run_id="0" * 16,
        rate=200.0,
        payload_bytes=64,
        expected=expected,
    )
    stats = StreamStats(identity, lag=recent, span=None)
    stats.running()
    stats.batching = batching
    if batching is not None:
        stats.burst(Burst(0.0, 1, 1, 40, None, 0.0))
    for since, until in blocked:
        stats.blocked("low on memory", since)
        stats.unblocked(until)
    for step, seconds, why in steps:
        if why is None:
            stats.steps.ok(step, 1.0, seconds)
        else:
            stats.steps.failed(step, 1.0, why)
    if reason:
        stats.failed(reason, 1.0)
    stats.deliveries = deliveries
    now = Instant(1e9, 1000.0)
    for seq, latency in enumerate(latencies, 1):
        settled = Settled(seq, 0.0, 0.0001, 0.0001 + latency, Outcome.ACKED, multiple=False, group=1)
        stats.enter(
            MessageEntry(1, settled, delivery=latency if deliveries else None, deliveries=1 if deliveries else None)
        )
    for seq, outcome in enumerate(outcomes, 1000):
        stats.enter(MessageEntry(1, Settled(seq, 0.0, 0.0001, None, outcome)))
    stats.aggregate(now, 10**6)
    return StreamReport(stats, stats.outcome(now))


def lines(*reports):
    """Return the lines of the text."""
    return text("127.0.0.1:5672", "RabbitMQ 4.3.6", "confirm", reports).splitlines()


def test_a_clean_run_reads_well():
    """Outcomes with their zeros, quantiles with units, a histogram, the probe's own error, a verdict."""
    shown = lines(report([0.001] * 99 + [0.5]))

    assert "confirm probe of RabbitMQ 4.3.6 at 127.0.0.1:5672" == shown[0]
    assert "quorum: 100 messages, 200/s, 64 bytes" in shown
    assert "  outcomes   acked 100  nacked 0  returned 0  undecided 0  lost 0" in shown
    assert "  confirm          100    1.00 ms    1.00 ms    1.00 ms     500 ms" in shown
    assert "    1.00 ms       99 ########################################" in shown
    assert "     500 ms        1 #" in shown
    assert "  own error  loop lag   p50 100 us  p99 100 us  max 100 us" in shown
    assert "             send delay p50 100 us  p99 100 us  max 100 us" in shown
    assert "  verdict    measurement good" in shown


def test_a_late_loop_makes_the_measurement_doubtful():
    """The verdict says so with values, below the numbers that it concerns."""
    shown = "\n".join(lines(report([0.001] * 100, lag=0.2)))

    assert "measurement doubtful: the probe itself was slow" in shown
    assert "p99 200 ms" in " ".join(shown.split())


def test_a_queue_type_that_could_not_be_measured_says_why():
    """No row of zeros that looks like a measurement."""
    shown = lines(report([], reason="the broker refuses (540 NOT_IMPLEMENTED)"))

    assert "  verdict    NOT MEASURED: the broker refuses (540 NOT_IMPLEMENTED)" in shown
    assert not any(line.startswith("  confirm  ") for line in shown)


def test_deliveries_are_reported_where_they_were_awaited():
    """Missing, duplicates, redelivered and out of order, zeros shown."""
    shown = lines(report([0.001] * 50, deliveries=DeliveryCounts(3, 2, 1)))

    assert "  delivered  missing 0  duplicates 2  redelivered 3  out of order 1" in shown
    assert any(line.startswith("  delivery ") for line in shown)


def test_a_run_is_clean_only_when_all_is_acked():
    """Lost, undecided and nacked messages count in the denominator."""
    assert report([0.001] * 30).clean
    assert not report([0.001] * 30, outcomes=[Outcome.TIMED_OUT]).clean
    assert not report([], reason="gone").clean


def test_the_document_holds_every_message_of_the_histogram():
    """`--json` tells the same as the text."""
    reported = report([0.001] * 9 + [0.02]).document()

    assert sum(bucket["count"] for bucket in reported["histogram"]) == 10
    assert reported["outcomes"]["acked"] == 10
    assert reported["confirm"]["count"] == 10


def test_what_a_probe_expects_is_clean():
    """For a queue that must refuse, an ack is the failure."""
    nacked = report([], outcomes=[Outcome.NACKED] * 9, expected=Outcome.NACKED)
    acked = report([0.001] * 9, expected=Outcome.NACKED)

    assert nacked.clean
    assert not acked.clean


def test_steps_are_a_table_with_the_reason_of_the_last_failure():
    """Also where a probe sends no messages at all; one failure is not clean."""
    found = report(
        [], steps=[("tcp", 0.001, None), ("tls", None, "its certificate is not trusted"), ("tcp", 0.002, None)]
    )
    shown = lines(found)

    assert "  tcp                      2         0   1.00 ms   2.00 ms   2.00 ms" in shown
    assert "  tls                      1         1         -         -         -" in shown
    assert "             failed last: its certificate is not trusted" in shown
    assert found.measured
    assert not found.clean


def test_batching_is_reported_with_its_confidence():
    """The word fsync only where the broker fsyncs."""
    sync = Batching(kind=BatchingKind.SYNC, interval=0.2, confidence=0.9, fsync=True, because="groups of 40")
    fsync = lines(report([0.3] * 30, batching=sync))
    write = lines(report([0.3] * 30, batching=replace(sync, fsync=False)))
    unknown = lines(report([0.3] * 30, batching=Batching(because="only 4 bursts")))

    assert "  batching   an fsync of 200 ms (confidence 90%): groups of 40" in fsync
    assert "  batching   a write of 200 ms (confidence 90%): groups of 40" in write
    assert "  batching   unknown: only 4 bursts" in unknown


def test_blocked_time_is_reported_with_the_words_of_the_broker():
    """The report has the total time and the reason."""
    assert "  blocked    3.0 s in all; the broker: low on memory" in lines(report([0.001] * 30, blocked=[(2.0, 5.0)]))


def test_layers_are_reported_where_streams_are_side_by_side():
    """The differences, what is withheld, and what stands out; in the document as well."""
    medians = {"unroutable": 0.001, "transient": 0.002, "classic": 0.003, "quorum": 0.3}
    reports = [report([seconds] * 40, stream=stream) for stream, seconds in medians.items()]
    shown, reported = lines(*reports), document(reports)

    assert "  network+channel  1.00 ms  round trip through the channel, into no queue" in shown
    assert "  replicate         298 ms  a majority of quorum queue members write it" in shown
    assert "  store                  -  withheld:" in shown
    assert max(map(len, shown)) <= 80
    assert any("the time is in replicate (298 ms)" in line for line in shown)
    assert reported["layers"][3]["seconds"] is None
    assert reported["layers"][4]["seconds"] == pytest.approx(0.298, rel=0.02)
    assert len(reported["streams"]) == 4
    assert reported["verdict"].startswith("most of the time is in replicate")


def test_a_run_over_time_shows_a_stall_where_it_was():
    """The plot shows the long responses in their column."""
    reported = report([0.001] * 30, outcomes=[Outcome.TIMED_OUT]).document()

    assert reported["over_time"] == [{"at": 0.0, "longest": 0.0011, "marks": "u"}]


@given(
    latencies=st.lists(st.floats(1e-6, 500.0), max_size=40),
    outcomes=st.lists(st.sampled_from([Outcome.LOST, Outcome.TIMED_OUT]), max_size=5),
    lag=st.floats(1e-6, 100.0),
    awaited=st.booleans(),
)
def test_no_line_is_longer_than_a_terminal(latencies, outcomes, lag, awaited):
    """80 columns, whatever was measured."""
    deliveries = DeliveryCounts() if awaited else None

    assert max(map(len, lines(report(latencies, outcomes=outcomes, lag=lag, deliveries=deliveries)))) <= 80
