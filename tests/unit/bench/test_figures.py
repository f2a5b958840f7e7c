"""Conclusions of the other benchmarks from their measurements."""

from dataclasses import replace

import pytest

from ackscope.records import Batching, BatchingKind, Outcome, ProbeOutcome, ProbeState
from bench.probes import ceiling
from bench.probes.__main__ import BENCHES
from bench.probes.ceiling import limited_by
from bench.probes.perftest import per_second, printed
from bench.probes.slow_disk import said
from bench.probes.stall import carried
from tests.unit.bench.records import RECORD

PRINTED = """\
id: test-1, time 1.000 s, sent: 201 msg/s, returned: 0 msg/s, confirmed: 201 msg/s, nacked: 0 msg/s, \
min/median/75th/95th/99th confirm latency: 395/1978/4238/7283/9256 µs
id: test-1, time 4.000 s, sent: 200 msg/s, returned: 0 msg/s, confirmed: 200 msg/s, nacked: 0 msg/s, \
min/median/75th/95th/99th confirm latency: 377/500/635/1400/2700 µs
id: test-1, time 5.000 s, sent: 200 msg/s, returned: 0 msg/s, confirmed: 200 msg/s, nacked: 0 msg/s, \
min/median/75th/95th/99th confirm latency: 347/600/606/700/1600 µs
id: test-1, confirm latency min/median/75th/95th/99th 345/557/699/3786/6609 µs
"""


def test_perf_test_is_read_without_its_warm_up():
    """The result is the median of the later seconds; the summary of the whole run is not one of them."""
    assert {"p50": 550, "p95": 1050, "p99": 2150} == {
        name: round(value * 1e6) for name, value in printed(PRINTED).items()
    }


def test_messages_are_figured_as_perf_test_does():
    """The result is the median of each second's quantiles, without the warm-up and unsettled messages."""
    messages = [(0.5, 9.0), (3.1, 0.1), (3.2, 0.3), (3.3, None), (4.5, 0.5), (5.5, 0.2)]

    assert 0.2 == per_second(messages)["p50"]


def test_a_stall_is_carried_by_those_that_were_due_in_it():
    """A message answered during the stall does not count."""
    during = [replace(RECORD, seq=tag, intended_at=100.0 + tag / 10, response=2.1 - tag / 10) for tag in range(1, 20)]
    before = replace(RECORD, seq=20, intended_at=99.0, response=0.001)
    wrong = replace(RECORD, seq=21, intended_at=101.0, response=0.001)
    figures = carried([*during, before, wrong], 100.0, 102.0)

    assert (21, 20, 19, 0) == tuple(figures[name] for name in ("messages", "during", "carry", "missing"))


def test_a_message_without_a_record_is_missing():
    """Tags have no gaps."""
    records = [replace(RECORD, seq=tag, response=0.001) for tag in (1, 2, 4)]

    assert 1 == carried(records, 0.0, 1.0)["missing"]


def outcome(batching):
    """An outcome that holds it."""
    return ProbeOutcome(
        probe="confirm", stream="quorum", queue_type="quorum", vhost="/", queue="q", node="", at=0.0,
        state=ProbeState.RUNNING, outcomes={Outcome.ACKED.value: 1}, batching=batching,
    )  # fmt: skip


@pytest.mark.parametrize(("interval", "within"), [(0.2, True), (0.229, True), (0.231, False), (0.169, False)])
def test_an_estimate_is_to_be_within_15_percent(interval, within):
    """The reference is the injected delay."""
    batching = Batching(kind=BatchingKind.SYNC, interval=interval, fsync=True)

    assert within is said(outcome(batching), 0.2)["within"]


def test_no_estimate_is_not_within():
    """A sync that was not seen is a miss."""
    figures = said(outcome(None), 0.2)

    assert (False, False, None) == (figures["within"], figures["claims"], figures["estimate"])


ROW = {"rate": 3000, "held": False, "probe": 0.5, "broker": 0.6, "machine": 0.7}


@pytest.mark.parametrize(
    ("row", "beginning"),
    [
        ({"held": True}, "the probes' own cap of 5000/s"),
        ({"probe": 0.97}, "its own processor time: at 3000/s the probe process took 97 % of a core"),
        ({"machine": 0.95}, "the machine: at 3000/s all 2 cores were busy; the probe process took 50 % of a core"),
        ({}, "waiting for a core: at 3000/s"),
    ],
)
def test_what_limits_the_rate_is_named(row, beginning):
    """The limit follows from the shares of processor time at the last rate."""
    assert limited_by({**ROW, **row}, 2).startswith(beginning)


def test_the_widest_row_of_the_ceiling_fits():
    """All processors busy, a rate of four digits, seconds of delay."""
    times = {"p50": 12.345, "p99": 12.345, "confirm_p50": 12.345}
    row = {**ROW, **times, "rate": 5000, "probe": 1.0, "broker": 1.5, "machine": 1.0, "tries": 3}
    document = {"broker": "3.10.8", "stream": "classic-large", "cores": 16, "rows": [row, {**row, "held": True}]}
    widest = max(ceiling.lines({**document, "highest": 5000, "limited_by": "x"}), key=len)

    assert len(widest) <= 80


@pytest.mark.parametrize("bench", BENCHES, ids=lambda bench: bench.name)
def test_every_benchmark_tells_its_options(bench, capsys):
    """And a wrong one is one line, with the exit code of the contract."""
    with pytest.raises(SystemExit) as ended:
        bench.main([*bench.short, "--nonsense"])

    assert 3 == ended.value.code
    assert f"python -m bench.probes.{bench.name}: unrecognized arguments: --nonsense" in capsys.readouterr().err
