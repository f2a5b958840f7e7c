"""What probes expect of their messages."""

from ackscope.records import NOT_ACKED_BY_DESIGN, Outcome, expected_outcome


def test_a_probe_that_is_refused_by_design_is_no_failure():
    """Its messages must be nacked, and do not count in a share of acked messages; all other probes expect acks."""
    assert (Outcome.NACKED, Outcome.ACKED) == (expected_outcome("nack"), expected_outcome("confirm"))
    assert {
        probe
        for probe in ("confirm", "delivery", "nack", "settle", "reject")
        if expected_outcome(probe) is not Outcome.ACKED
    } == set(NOT_ACKED_BY_DESIGN)
