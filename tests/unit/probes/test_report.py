from hypothesis import given
from hypothesis import strategies as st

from ackscope.clock import Instant
from ackscope.records import Outcome
from probes.book import Book, DeliveryCounts, Entry
from probes.identity import Identity
from probes.ledger import Settled
from probes.report import StreamReport, text
from probes.window import Recent


def report(latencies, *, outcomes=(), lag=0.0001, deliveries=None, reason=None):
    """The report of a run that had these confirms and these outcomes without one."""
    recent = Recent(span=None)
    recent.record(lag, 0.0)
    identity = Identity(
        probe="delivery" if deliveries else "confirm",
        stream="quorum",
        queue_type="quorum",
        vhost="/",
        queue="q",
        run_id="0" * 16,
        rate=200.0,
        payload_bytes=64,
    )
    book = Book(identity, lag=recent, span=None)
    book.running()
    if reason:
        book.failed(reason, 1.0)
    book.deliveries = deliveries
    now = Instant(1e9, 1000.0)
    for seq, latency in enumerate(latencies, 1):
        settled = Settled(seq, 0.0, 0.0001, 0.0001 + latency, Outcome.ACKED, multiple=False, group=1)
        book.enter(Entry(1, settled, delivery=latency if deliveries else None, deliveries=1 if deliveries else None))
    for seq, outcome in enumerate(outcomes, 1000):
        book.enter(Entry(1, Settled(seq, 0.0, 0.0001, None, outcome)))
    book.digest(now, 10**6)
    return StreamReport(book, book.outcome(now))


def lines(*reports):
    """The whole text, line by line."""
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
    assert "  own error  send delay p50 100 us  p99 100 us  max 100 us" in shown
    assert "  measurement good" in shown


def test_a_late_loop_makes_the_measurement_doubtful():
    """The verdict says so, with figures, under the numbers that it concerns."""
    shown = "\n".join(lines(report([0.001] * 100, lag=0.2)))

    assert "measurement doubtful: because the probe itself was slow" in shown
    assert "p99 200 ms" in shown.replace("\n    ", " ")


def test_a_queue_type_that_could_not_be_measured_says_why():
    """No row of zeros that looks like a measurement."""
    shown = lines(report([], reason="the broker refuses (540 NOT_IMPLEMENTED)"))

    assert "  NOT MEASURED: the broker refuses (540 NOT_IMPLEMENTED)" in shown
    assert not any(line.startswith("  confirm  ") for line in shown)


def test_deliveries_are_told_where_they_were_awaited():
    """Missing, duplicates, redelivered and out of order, zeros shown."""
    shown = lines(report([0.001] * 50, deliveries=DeliveryCounts(3, 2, 1)))

    assert "  delivered  missing 0  duplicates 2  redelivered 3  out of order 1" in shown
    assert any(line.startswith("  delivery ") for line in shown)


def test_a_run_is_clean_only_when_all_is_acked():
    """Lost, undecided and nacked messages stay in the denominator."""
    assert report([0.001] * 30).clean
    assert not report([0.001] * 30, outcomes=[Outcome.UNDECIDED]).clean
    assert not report([], reason="gone").clean


def test_the_document_holds_every_message_of_the_histogram():
    """`--json` tells the same as the text."""
    document = report([0.001] * 9 + [0.02]).document()

    assert sum(bucket["count"] for bucket in document["histogram"]) == 10
    assert document["outcomes"]["acked"] == 10
    assert document["confirm"]["count"] == 10


@given(
    latencies=st.lists(st.floats(1e-6, 500.0), max_size=40),
    outcomes=st.lists(st.sampled_from([Outcome.LOST, Outcome.UNDECIDED]), max_size=5),
    lag=st.floats(1e-6, 100.0),
    awaited=st.booleans(),
)
def test_no_line_is_longer_than_a_terminal(latencies, outcomes, lag, awaited):
    """80 columns, whatever was measured."""
    deliveries = DeliveryCounts() if awaited else None

    assert max(map(len, lines(report(latencies, outcomes=outcomes, lag=lag, deliveries=deliveries)))) <= 80
