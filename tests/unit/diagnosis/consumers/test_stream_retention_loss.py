"""Readers of a stream whose next messages were deleted."""

from dataclasses import replace

import pytest

from diagnosis.rules.consumers.stream_retention_loss import NAME
from tests.unit.diagnosis.consumers.results import found
from tests.unit.diagnosis.consumers.test_stream_readers import frame
from tests.unit.diagnosis.pictures import film, look, told

LIMITED = {"x-max-length-bytes": 400_000}


def reads(t, *, jump=0, published=10_000, arguments=None, messages=1000, **fields):
    """It is sent 40 in 5 s; from the 30th second on it has jumped over so many."""
    sent = 1000 + 8 * int(t)
    made = frame(sent, 0, **fields)
    (stream,), (reader,) = made["queues"], made["streams"].consumers
    offset = sent + 5000 + (jump if t >= 30 else 0)
    moved = {"offset": offset, "offset_lag": published + 100 * int(t) - offset}
    return {
        **made,
        "queues": (replace(stream, messages=messages, arguments=LIMITED if arguments is None else arguments),),
        "streams": replace(made["streams"], consumers=(replace(reader, **moved),)),
    }


def mine(window):
    """The findings of this rule."""
    return [each for each in look(window).findings if each.rule == NAME]


def test_a_reader_that_was_overtaken_is_named():
    """It went on 3,000 messages later, at the begin of the stream."""
    verdict = look(film(lambda t: reads(t, jump=3000), until=60))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert ("critical", "events") == (finding.severity.value, finding.subject.name)
    assert ("billing",) == finding.involved.clients
    assert 3000 == finding.facts["missed"]
    for words in ("'billing'", "missed about 3,000 messages", "keeps 391 KiB", "max-length-bytes"):
        assert words in told(finding)


def consequences(verdict):
    """All findings below others."""
    return [each for cause in verdict.findings for each in cause.consequences]


def test_later_it_is_a_warning():
    """It happened two minutes ago."""
    verdict = look(film(lambda t: reads(t, jump=3000), until=160))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert "warning" == finding.severity.value


@pytest.mark.parametrize(
    "calm",
    [
        reads,
        # The broker's own chunks.
        lambda t: reads(t, jump=60),
        lambda t: reads(t, jump=3000, filtered=True),
        # It keeps everything, so nothing was deleted.
        lambda t: reads(t, jump=3000, arguments={"x-queue-type": "stream"}),
        # It is far from the begin.
        lambda t: reads(t, jump=3000, messages=900_000),
    ],
    ids=["no jump", "few", "filter", "no retention", "not at the begin"],
)
def test_jumps_that_prove_nothing(calm):
    """Without evidence of a deletion there is no loss."""
    assert NAME not in {each[0] for each in found(look(film(calm, until=60)))}
