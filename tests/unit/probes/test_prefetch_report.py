from probes.prefetch import over
from probes.prefetch_report import document, text
from probes.prefetch_sweep import Sweep
from probes.saturation import SweepPoint, advise


def sweep(work=0.0051):
    """Return a sweep of three values; with the first one the consumer is busy half of the time."""
    points = [
        SweepPoint(
            prefetch=prefetch,
            messages=messages,
            seconds=10.0,
            busy=busy,
            unacked_p50=float(held),
            unacked_max=float(held),
            wait_p50=held * work,
            wait_p99=held * work,
            work=work,
        )
        for prefetch, messages, busy, held in ((1, 100, 0.5, 1), (2000, 200, 0.99, 2000), (0, 200, 0.99, 65535))
    ]
    return Sweep("quorum", 0.005, points, advise(points, 0.005, 0.005))


def test_the_report_has_a_row_a_value_and_fits_a_terminal():
    """Bars are relative to the best value; the advice has a reason."""
    reported = text("RabbitMQ 4.3.6", "rabbit-1.shop.example:5672", 0.005, [sweep()])

    assert max(map(len, reported.splitlines())) <= 80
    assert "          1      10 ########          50%          1     1   5.10 ms" in reported
    assert "  unlimited      20 ################  99%      65535 65535     334 s" in reported
    assert "recommended  prefetch 2000 (measured knee 2000, by formula 2)" in reported
    assert "measurement good" in reported


def test_work_that_took_too_long_is_reported():
    """The text shows the probe's own error."""
    assert "longest average work 6.00 ms: measurement doubtful" in text("x", "y:1", 0.005, [sweep(0.006)])


def test_the_document_holds_the_same():
    """A prefetch of 0 means no limit."""
    (found,) = document("RabbitMQ 4.3.6", "h:1", 0.005, [sweep()])["sweeps"]

    assert [1, 2000, 0] == [point["prefetch"] for point in found["points"]]
    assert (10.0, 2000, 2) == (found["points"][0]["throughput"], found["recommended"], found["formula"])


def test_a_consumer_may_hold_its_prefetch_and_no_more():
    """One more is a broker fault, reported with both numbers."""
    assert over(5, 5) is None
    assert "sent 6 deliveries without an ack; the prefetch limit is 5" in over(6, 5)
