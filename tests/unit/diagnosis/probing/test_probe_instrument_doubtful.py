import pytest

from tests.unit.diagnosis.probing.heard import heard, of, one, outcome, took

RULE = "probe-instrument-doubtful"
SLOW = "the probe itself was slow"


def late(seconds, stream="classic", **fields):
    """Return a confirm stream that was itself late by this much."""
    usual = {"doubtful": SLOW, "confirm": took(0.002), "send_delay": took(0.0001, p99=seconds), "loop_lag": took(0.0)}
    return outcome("confirm", stream, **{**usual, **fields})


@pytest.mark.parametrize(("seconds", "severity"), [(0.02, "info"), (0.4, "info"), (1.4, "warning")])
def test_a_probe_that_was_late_itself_is_one_finding(seconds, severity):
    """All streams share one machine."""
    assert [(severity, "all")] == of(RULE, heard(late(seconds), late(seconds, "quorum")))


def test_it_says_how_late_and_whose_figures_not_to_believe():
    """The worst stream comes first."""
    finding = one(RULE, heard(late(0.02), late(0.4, "quorum")))

    assert (0.4, ["confirm.quorum", "confirm.classic"]) == (finding.facts["worst_seconds"], finding.facts["streams"])


@pytest.mark.parametrize(
    "fields",
    [
        {"doubtful": None},
        {"send_delay": took(0.0), "doubtful": "only 3 messages settled; at least 20 are needed"},
        {"confirm": took(1.0)},
        {"at": 0.0},
    ],
    ids=["trusted", "too few messages", "beside far longer confirms", "long ago"],
)
def test_streams_that_were_not_late_are_left_alone(fields):
    """Few messages are no fault of the machine."""
    assert [] == of(RULE, heard(late(0.02, **fields)))
