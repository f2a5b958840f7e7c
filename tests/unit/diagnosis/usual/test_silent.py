"""publisher-silent for queues that settings do not name."""

import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats
from tests.unit.diagnosis.publishers.films import shop
from tests.unit.diagnosis.usual.bands import NoBand, NotYet, band, known, one_of, reported_of

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
    """The result after this many seconds, with these baselines of each queue."""
    window = film(lambda t: silent(t, names=names, **fields), until=until, every=10)
    usual = known({})
    every = {}
    for name in names:
        every |= known(BUSY if bands is None else bands, of=("queue", "/", name)).bands
    object.__setattr__(usual, "bands", every)
    return look(window, baselines=usual, thresholds=thresholds)


def test_a_queue_that_is_busy_at_this_hour_need_not_be_named():
    """Information after two minutes, a warning after five, with the baseline."""
    finding = one_of(RULE, verdict())

    assert [] == reported_of(RULE, verdict(until=150))
    assert [("info", "queue", "orders")] == reported_of(RULE, verdict(until=200))
    early = one_of(RULE, verdict(until=200))
    assert ("early", 300.0) == (early.certainty, early.facts["warning_after_seconds"])
    assert ("warning", "orders") == (finding.severity, finding.subject.name)
    assert (3.0, ["shop"]) == (finding.facts["usual_rate"], finding.facts["connected_clients"])
    expected = {"low": 2.0, "high": 4.0, "unit": "rate", "of_week": True, "values": 6}
    assert expected == {key: finding.facts["band_of"][key] for key in expected}
    assert ["published", "busy_minutes"] == [item.key for item in finding.evidence]


@pytest.mark.parametrize(
    "bands",
    [
        {"busy": band(0.1, 0.3), "published": band(2, 4)},
        {"busy": band(1, 1), "published": band(0.01, 0.04)},
        {"busy": NotYet(NoBand.FEW_DAYS, 2), "published": band(2, 4)},
        {"busy": band(1, 1)},
        {},
    ],
    ids=["filled in batches", "a few an hour", "not yet", "no rate", "no history"],
)
def test_silence_that_may_be_usual_is_not_reported(bands):
    """What comes in batches is silent between them; a few messages may be late."""
    assert [] == reported_of(RULE, verdict(bands))


def test_a_queue_that_is_published_to_is_not_reported():
    """The publish rate does not matter."""
    assert [] == reported_of(RULE, verdict(since=1e9))


def test_an_absent_counter_after_a_restart_is_silence():
    """The broker counts from zero again; by the baseline somebody should publish."""
    assert [("warning", "queue", "orders")] == reported_of(RULE, verdict(since=0.0, before=0))


def test_a_queue_that_settings_name_has_one_finding():
    """The settings of the owner apply."""
    named = Thresholds.model_validate({"publishers": {"silent_queues": ["orders"]}})

    assert [("warning", "queue", "orders")] == reported_of(RULE, verdict(thresholds=named))
    assert one_of(RULE, verdict(thresholds=named)).facts["usual_rate"] is None


def test_a_baseline_of_days_alone_is_no_ground_for_a_warning():
    """The first Saturday after a week of work looks like silence."""
    finding = one_of(RULE, verdict({"busy": band(1, 1, days=5), "published": band(2, 4, days=5)}))

    assert "info" == finding.severity
    assert finding.facts["by_weekday"] is False
    assert (False, 5) == (finding.facts["band_of"]["of_week"], finding.facts["band_of"]["values"])


def test_many_queues_that_fall_silent_together_are_one_finding():
    """Of their virtual host: one application stopped, or the day is a quiet one."""
    names = [f"orders.{number}" for number in range(12)]
    finding = one_of(RULE, verdict(names=names, connected=False))

    assert ("vhost", "/") == (finding.subject.kind, finding.subject.name)
    assert (12, []) == (len(finding.facts["queues"]), finding.facts["connected_clients"])
    assert 12 == len(finding.involved.queues)
    assert 3 == len(reported_of(RULE, verdict(names=names[:3])))


def test_its_limits_may_be_changed_for_some_queues():
    """Overrides work as for other thresholds."""
    longer = [{"queues": "orders", "values": {"usual": {"silent_soon": "9m"}}}]
    thresholds = Thresholds.model_validate({"overrides": longer})

    assert [] == reported_of(RULE, verdict(thresholds=thresholds))
