"""A queue that refused what is published to it, until its policy changed: what was nacked then is no loss."""

from dataclasses import replace

import pytest

from ackscope.findings import flat
from ackscope.snapshot import Part
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import channel, film, look, snapshot, stats
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE, LAW = "maxlen-drop-head", "unexplained-loss"
LIMIT = {"max-length": 40}
REFUSES = {**LIMIT, "overflow": "reject-publish"}


def changed(t, *, at=60.0, before=REFUSES, after=LIMIT, rate=8.0, name="orders", **fields):
    """A full queue whose policy changes; more is published all the time than its consumer takes."""
    settings = before if t < at else after
    made = {"ready": 40, "acked": 0.5, "policy": "guard", "effective_policy": settings, **fields}
    return flowing(t, name, published=rate, **made)


def shot(until, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: frame(changed(t, **fields)), until=until))


@pytest.mark.parametrize("before", [REFUSES, {**LIMIT, "overflow": "reject-publish-dlx"}])
@pytest.mark.parametrize(("rate", "name"), [(8.0, "orders"), (90.0, "夜.b"), (2.0, "q")])
def test_what_was_refused_is_not_counted_as_dropped(before, rate, name):
    """From the change on, it is a loss; that of one refresh may be missing."""
    finding = one(RULE, shot(200, before=before, rate=rate, name=name))

    assert (rate - 0.5) * 120 <= finding.facts["lost"] <= (rate - 0.5) * 146
    assert 120 <= finding.seen_seconds <= 146
    assert "critical" == finding.severity


@pytest.mark.parametrize("until", [65, 70])
def test_it_has_just_begun(until):
    """A minute of refusals does not make it last longer."""
    assert "critical" not in {severity for severity, _ in of(RULE, shot(until))}
    assert all(each.facts["lost"] <= 8 * 10 for each in flat(shot(until).findings) if each.rule == RULE)


@pytest.mark.parametrize("after", [LIMIT, {}, {"max-length": 5000}], ids=["drops", "no limit", "higher limit"])
def test_what_was_refused_before_traffic_ended_is_no_loss(after):
    """Neither by its new limit, nor for an unknown reason."""

    def at(t):
        return frame(replace(changed(min(t, 60.0)), effective_policy=REFUSES if t < 65 else after))

    result = look(film(at, until=120))

    assert [] == of(RULE, result)
    assert [] == of(LAW, result)


def test_a_queue_that_dropped_all_the_time_lost_it_all():
    """The policy was given another name for the same."""
    finding = one(RULE, shot(200, before={**LIMIT, "overflow": "drop-head"}))

    assert finding.facts["lost"] >= 7.5 * 190


def sampled(t, *, nacked, vhost="/"):
    """A look, whose earlier readings are samples with the settings of now; nothing is published any more.

    The publisher is in confirm mode, and `nacked` of its messages were neither confirmed nor are they unconfirmed.
    """
    made = frame(changed(min(t, 100.0), before=LIMIT))
    counted = stats(publish=900, confirm=900 - nacked)
    own = channel("10.0.0.9:5 -> b (1)", vhost=vhost, confirm=True, messages_unconfirmed=0, stats=counted)
    seen = {"channels": (own,)} if t >= 110 else {"channels": Part(value=None, at=snapshot(t).taken)}
    return {**made, **seen}


@pytest.mark.parametrize(
    ("fields", "found"), [({"nacked": 750}, False), ({"nacked": 0}, True), ({"nacked": 750, "vhost": "b"}, True)]
)
def test_samples_of_the_broker_prove_no_loss_where_a_publisher_was_nacked(fields, found):
    """A queue that drops its oldest messages confirms all of them."""
    window = film(lambda t: sampled(t, **fields), until=122, every=6)
    result = look(window, thresholds=Thresholds.as_if_lasting())

    assert found == bool(of(RULE, result))


def test_what_is_dropped_now_is_reported_all_the_same():
    """Two readings of the queue are enough."""

    def at(t):
        made = sampled(t, nacked=500)
        return {**made, **frame(changed(t, before=LIMIT))}

    window = film(at, until=128, every=6)
    finding = one(RULE, look(window, thresholds=Thresholds.as_if_lasting()))

    assert finding.facts["lost"] <= 8 * 24
