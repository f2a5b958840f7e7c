import pytest

from ackscope.records import ProbeState
from tests.unit.diagnosis.nodes.machines import frame, outcome, round_trip_probe, seconds
from tests.unit.diagnosis.pictures import NODE, evidence, film, found, look, only

RULE = "slow-disk"


def probes(quorum, classic=(0.001, None), rtt=0.001, **fields):
    """The confirms of a quorum and a classic queue, and the broker round trip."""
    return (
        outcome("confirm", "quorum", confirm=seconds(*quorum), node=NODE, **fields),
        outcome("confirm", "classic", confirm=seconds(*classic), node=NODE),
        *([round_trip_probe(rtt)] if rtt is not None else []),
    )


def seen(outcomes, version="4.3.6", **fields):
    """The result on a healthy node, with these probes."""
    return look(film(frame(version, **fields), until=30), outcomes=outcomes)


def test_a_quorum_queue_that_confirms_slowly_while_the_rest_is_fast_shows_a_slow_disk():
    """A slow median is a warning, a slow p90 information."""
    warning, info = only(seen(probes((0.3, 0.31)))), only(seen(probes((0.002, 0.3))))

    assert (RULE, "warning", NODE) == (warning.rule, warning.severity.value, warning.subject.name)
    assert (0.3, 0.31) == (warning.facts["median_seconds"], warning.facts["p90_seconds"])
    assert (RULE, "info", "early") == (info.rule, info.severity, info.certainty)
    assert ("median", "p90") == (warning.facts["judged_by"], info.facts["judged_by"])
    assert (0.002, 0.3) == (info.facts["median_seconds"], info.facts["p90_seconds"])


def test_if_everything_is_slow_it_is_another_cause():
    """Too little CPU, or a slow network: the broker round trip takes long too."""
    assert [] == found(seen(probes((0.3, 0.31), rtt=0.2)))


def test_on_4x_a_slow_classic_queue_is_not_the_disk():
    """It confirms without waiting for the disk."""
    assert [] == found(seen(probes((0.3, 0.31), classic=(0.3, 0.31), rtt=None)))
    assert [(RULE, "warning", NODE)] == found(seen(probes((0.3, 0.31), rtt=None)))


def test_on_3x_a_classic_queue_waits_for_the_disk_too():
    """It does not show how long an operation without the disk takes."""
    assert [(RULE, "warning", NODE)] == found(seen(probes((0.3, 0.31), classic=(0.3, 0.31)), "3.10.8"))
    assert [] == found(seen(probes((0.3, 0.31), rtt=None), "3.10.8"))


@pytest.mark.parametrize("state", [ProbeState.BLOCKED, ProbeState.FAILED])
def test_a_probe_that_is_blocked_proves_nothing(state):
    """An alarm is another cause."""
    assert [] == found(seen(probes((0.3, 0.31), state=state)))


def test_a_probe_that_is_late_itself_is_late_in_all_its_streams():
    """If its host was too busy, operations without disk are slow too; otherwise the disk is slow."""
    doubt = "the probe itself was late"

    assert [] == found(seen(probes((0.3, 0.31), classic=(0.05, 0.1), doubtful=doubt)))
    assert [(RULE, "warning", NODE)] == found(seen(probes((0.3, 0.31), doubtful=doubt)))


@pytest.mark.parametrize(("count", "severity"), [(2, None), (4, "info"), (10, "warning")])
def test_few_confirms_prove_little(count, severity):
    """A minority confirms nothing at all; a slow disk confirms a few in a short diagnosis."""
    slow = outcome("confirm", "quorum", confirm=seconds(0.4, count=count), node=NODE)
    expected = [(RULE, severity, NODE)] if severity else []

    assert expected == found(seen((slow, round_trip_probe())))


def test_3x_reports_its_syncs_itself():
    """The recent ones count, not the mean over its whole life, which is still good."""

    def mean(t):
        slow = max(0, int(t - 10))
        return (10_000 * 0.001 + slow * 0.3) / (10_000 + slow)

    finding = only(seen((), "3.10.8", io_sync_count=lambda t: 10_000 + max(0, int(t - 10)), io_sync_avg_time=mean))

    assert (RULE, "warning", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert 0.3 == pytest.approx(evidence(finding, "sync").value)


def test_fast_syncs_on_3x_are_not_reported():
    """A sync takes 2 ms."""
    assert [] == found(seen((), "3.10.8", io_sync_count=lambda t: int(10 * t), io_sync_avg_time=0.002))


def test_without_probes_it_is_inconclusive_on_4x():
    """Permanently: its own statistics are all zero."""
    gaps = {gap.rule: gap for gap in seen(()).inconclusive}

    assert gaps[RULE].permanent
    assert "no_disk_statistics" == gaps[RULE].reason
