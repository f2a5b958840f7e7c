import pytest
from pydantic import ValidationError

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats
from tests.unit.diagnosis.publishers.films import facts, findings, of, shop

RULE = "publisher-silent"
WATCHED = Thresholds.model_validate({"publishers": {"silent_queues": ["^orders$"]}})


def silent(t, *, since=60.0, before=100, name="orders", connected=True):
    """A queue to which nobody publishes from second 60 on."""
    published = int(before + min(t, since)) if before else 0
    counters = {"publish": published, "deliver": published, "ack": published} if published else {}
    return {"queues": (queue(name, stats=stats(**counters)),), "connections": (shop(),) if connected else ()}


def test_a_watched_queue_without_a_publish_is_a_warning_after_five_minutes():
    """Not before."""
    early, late = (
        look(film(silent, until=300, every=10), thresholds=WATCHED),
        look(film(silent, until=400, every=10), thresholds=WATCHED),
    )

    assert [] == of(early, RULE)
    assert [("warning", "queue", "orders")] == of(late, RULE)
    assert ["shop"] == facts(late, RULE)["connected_clients"]
    assert ["published"] == [item.key for item in findings(late, RULE)[0].evidence]


def test_no_queue_is_watched_unless_settings_say_so():
    """The broker does not know what is usual."""
    assert [] == of(look(film(silent, until=500, every=10)), RULE)


@pytest.mark.parametrize(
    "change", [{"since": 1e9}, {"name": "other"}, {"before": 0, "since": 0.0}], ids=["busy", "other", "never used"]
)
def test_other_queues_are_not_reported(change):
    """One that gets messages, one that is not named, one that never got any."""
    assert [] == of(look(film(lambda t: silent(t, **change), until=500, every=10), thresholds=WATCHED), RULE)


def test_a_vhost_without_applications_is_shown():
    """None of its virtual host is connected."""
    verdict = look(film(lambda t: silent(t, connected=False), until=400, every=10), thresholds=WATCHED)

    assert [] == facts(verdict, RULE)["connected_clients"]


def test_a_queue_may_have_a_limit_of_its_own():
    """By an override."""
    longer = [{"queues": "orders", "values": {"publishers": {"silent_for": "8m"}}}]
    thresholds = Thresholds.model_validate({"publishers": {"silent_queues": ["orders"]}, "overrides": longer})

    assert [] == of(look(film(silent, until=400, every=10), thresholds=thresholds), RULE)


@pytest.mark.parametrize("key", ["silent_queues", "unroutable_by_design"])
def test_an_invalid_pattern_is_refused(key):
    """When the settings are read."""
    with pytest.raises(ValidationError) as caught:
        Thresholds.model_validate({"publishers": {key: ["(orders"]}})

    assert "'(orders' is not a regular expression" in str(caught.value)
