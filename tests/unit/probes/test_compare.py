from ackscope.records import Quantiles
from probes.compare import text
from probes.strategies import StrategyResult, ratio


def compared(strategy, acked, seconds=2.0, *, stream="quorum", reason=None, **others):
    """Return the result of a strategy."""
    return StrategyResult(
        stream=stream,
        strategy=strategy,
        batch=100 if strategy == "batch" else 0,
        outcomes={"acked": acked, **others},
        seconds=seconds,
        confirm=Quantiles(count=acked, p50=0.001, p90=0.002, p99=0.01, max=12.5) if acked else Quantiles(),
        reason=reason,
    )


def test_throughput_counts_what_was_acked():
    """Other messages do not count, and the run is not clean."""
    assert (500.0, True) == (compared("batch", 1000).throughput, compared("batch", 1000).clean)
    assert (500.0, False) == (compared("batch", 1000, lost=3).throughput, compared("batch", 1000, lost=3).clean)
    assert compared("batch", 0).throughput is None
    assert not compared("batch", 1000, reason="the broker blocks publishers").clean


def test_strategies_are_reported_beside_the_slowest():
    """They are in the order of the run; a single strategy is not compared."""
    items = [compared("individual", 1000), compared("batch", 5000), compared("async", 9000)]

    assert ratio(items) == "individual : batch : async = 1 : 5 : 9"
    assert ratio(items[:1]) is None
    assert ratio([*items, compared("async", 0)]) is None


def test_the_report_reads_well_in_80_columns():
    """It has one table per stream, the messages not acked, and why the run ended early."""
    reason = "127.0.0.1:5672: the connection was lost while publishing with routing key 'ackscope.probe.once.1'"
    shown = text(
        "127.0.0.1:5672",
        "RabbitMQ 4.3.6",
        64,
        [
            compared("individual", 1000),
            compared("batch", 9997, lost=3, reason=reason),
            compared("async", 10, stream="x"),
        ],
    ).splitlines()

    assert "  individual         1000     2.00      500   1.00 ms   10.0 ms    12.5 s" in shown
    assert "  individual : batch = 1 : 10" in shown
    assert "    not acked: lost 3" in shown
    assert any("ended early: 127.0.0.1:5672" in line for line in shown)
    assert max(map(len, shown)) <= 80
