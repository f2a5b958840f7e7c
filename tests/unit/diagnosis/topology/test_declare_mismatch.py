import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.clients.loops import looping
from tests.unit.diagnosis.pictures import PEER, film, found, look, only, queue, text


def mismatched(t, *, text=153, declares=1, queues=(), **fields):
    """A queue declared with a TTL that it does not have, and the broker's text of this many bytes."""
    return {**looping(t, sent=35 + text, received=70, declares=declares, **fields), "queues": queues}


def test_a_declaration_that_is_refused_again_and_again_is_reported():
    """The channel churn is its consequence."""
    finding = only(look(film(mismatched, until=30)))

    assert ("declare-mismatch", "info", PEER) == (finding.rule, finding.severity, finding.subject.name)
    assert ["channel-churn"] == [each.rule for each in finding.consequences]
    assert ("billing", "early", 180.0) == (
        finding.facts["client"], finding.certainty, finding.facts["warning_after_seconds"],
    )  # fmt: skip
    assert "a warning after 3 min" in text(finding).summary


def test_it_is_a_warning_after_three_minutes():
    """A rolling deployment is over by then."""
    assert [("declare-mismatch", "warning", PEER)] == found(look(film(mismatched, until=200)))


@pytest.mark.parametrize(
    "frame",
    [
        lambda t: mismatched(t, declares=0),
        lambda t: mismatched(t, text=63),
        lambda t: looping(t, sent=28, received=70, declares=1),
    ],
    ids=["nothing is declared", "another error", "no error"],
)
def test_other_loops_are_not_reported(frame):
    """Each is a loop of another kind."""
    assert "declare-mismatch" not in {rule for rule, _, _ in found(look(film(frame, until=40)))}


def test_a_locked_queue_is_another_finding():
    """The text is as long as that about an exclusive queue that exists: 215 bytes and the names of queue and vhost."""
    held = queue("fault.lock", exclusive=True, durable=False)
    verdict = look(film(lambda t: mismatched(t, text=215 + 10 + 1, queues=(held,)), until=40))

    assert [("exclusive-name-locked", "info", "fault.lock")] == found(verdict)


def test_two_polls_are_enough():
    """Six seconds apart."""
    window = film(mismatched, until=12, every=6, start=6)

    assert [("declare-mismatch", "warning", PEER)] == found(look(window, thresholds=Thresholds.as_if_lasting()))
