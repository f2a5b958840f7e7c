"""publisher-silent of queues that nobody named."""

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, told
from tests.unit.diagnosis.publishers.films import shop
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, band, known, one_of, told_of

RULE = "publisher-silent"
BUSY = {"busy": band(1, 1), "published": band(2, 4)}


def silent(t, *, since=60.0, names=("orders",), connected=True, before=100, **fields):
    """Queues to which nobody publishes from second 60 on."""
    published = int(before + 3 * min(t, since))
    counters = stats(publish=published, deliver=published, ack=published) if published else stats()
    return {
        "queues": tuple(queue(name, stats=counters, **fields) for name in names),
        "connections": (shop(),) if connected else (),
    }


def verdict(bands=None, *, until=400, thresholds=None, names=("orders",), **fields):
    """After so many seconds, where this is usual of each queue."""
    window = film(lambda t: silent(t, names=names, **fields), until=until, every=10)
    usual = known({})
    every = {}
    for name in names:
        every |= known(BUSY if bands is None else bands, of=("queue", "/", name)).bands
    object.__setattr__(usual, "bands", every)
    return look(window, baselines=usual, thresholds=thresholds)


def test_a_queue_that_is_busy_at_this_hour_need_not_be_named():
    """Information after two minutes, a warning after five; what is usual is told, and from what it is known."""
    finding = one_of(RULE, verdict())

    assert [] == told_of(RULE, verdict(until=150))
    assert [("info", "queue", "orders")] == told_of(RULE, verdict(until=200))
    assert "a deployment looks the same, a warning comes after 5 min" in told(one_of(RULE, verdict(until=200)))
    assert ("warning", "orders") == (finding.severity, finding.subject.name)
    assert "3/s is usual at this hour of the week" in finding.summary
    assert "2 to 4/s at this hour of the week, from 6 weeks" in told(finding)
    assert "1 application of its vhost is connected: 'shop'" in finding.cause


@pytest.mark.parametrize(
    "bands",
    [
        {"busy": band(0.1, 0.3), "published": band(2, 4)},
        {"busy": band(1, 1), "published": band(0.01, 0.04)},
        {"busy": NotYet(NoBand.FEW_DAYS, 2), "published": band(2, 4)},
        {"busy": band(1, 1)},
        {},
    ],
    ids=["filled in batches", "a few an hour", "not yet", "no pace", "no history"],
)
def test_silence_that_may_be_usual_is_not_told(bands):
    """What comes in batches is silent between them; a few messages may be late."""
    assert [] == told_of(RULE, verdict(bands))


def test_a_queue_that_is_published_to_is_left_alone():
    """However little."""
    assert [] == told_of(RULE, verdict(since=1e9))


def test_after_the_broker_began_to_count_anew_its_publisher_may_have_stayed_away():
    """The counter is absent then; what is usual says that it should not be."""
    assert [("warning", "queue", "orders")] == told_of(RULE, verdict(since=0.0, before=0))


def test_a_queue_that_settings_name_has_one_finding():
    """By the rule of its owner."""
    named = Thresholds.model_validate({"publishers": {"silent_queues": ["orders"]}})

    assert [("warning", "queue", "orders")] == told_of(RULE, verdict(thresholds=named))
    assert "diagnosis.publishers.silent_for" in told(one_of(RULE, verdict(thresholds=named)))


def test_what_is_known_of_days_alone_is_no_ground_for_a_warning():
    """The first Saturday after a week of work looks like silence."""
    finding = one_of(RULE, verdict({"busy": band(1, 1, days=5), "published": band(2, 4, days=5)}))

    assert "info" == finding.severity
    assert "a weekend or a quiet day looks the same" in finding.summary
    assert "2 to 4/s at this hour of the day, from 5 days" in told(finding)


def test_many_queues_that_fall_silent_together_are_one_finding():
    """Of their virtual host: one application stopped, or the day is a quiet one."""
    names = [f"orders.{number}" for number in range(12)]
    finding = one_of(RULE, verdict(names=names, connected=False))

    assert ("vhost", "/") == (finding.subject.kind, finding.subject.name)
    assert "12 queues of vhost '/'" in finding.summary
    assert "and 9 more" in finding.summary
    assert "No application of its vhost is connected." in finding.cause
    assert 3 == len(told_of(RULE, verdict(names=names[:3])))


def test_patience_may_be_changed_for_some_queues():
    """By an override, as everywhere."""
    longer = [{"queues": "orders", "values": {"usual": {"silent_soon": "9m"}}}]
    thresholds = Thresholds.model_validate({"overrides": longer})

    assert [] == told_of(RULE, verdict(thresholds=thresholds))
