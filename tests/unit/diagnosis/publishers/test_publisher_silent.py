import pytest
from pydantic import ValidationError

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.pictures import film, look, queue, stats, told
from tests.unit.diagnosis.publishers.films import of, shop, whole

RULE = "publisher-silent"
WATCHED = Thresholds.model_validate({"publishers": {"silent_queues": ["^orders$"]}})


def silent(t, *, since=60.0, before=100, name="orders", connected=True):
    """A queue to which nobody publishes from second 60 on."""
    published = int(before + min(t, since)) if before else 0
    counters = {"publish": published, "deliver": published, "ack": published} if published else {}
    return {"queues": (queue(name, stats=stats(**counters)),), "connections": (shop(),) if connected else ()}


def test_a_queue_that_is_watched_and_gets_nothing_is_told_after_five_minutes():
    """Not before."""
    early, late = (
        look(film(silent, until=300, every=10), thresholds=WATCHED),
        look(film(silent, until=400, every=10), thresholds=WATCHED),
    )

    assert [] == of(early, RULE)
    assert [("warning", "queue", "orders")] == of(late, RULE)
    assert "1 application of its vhost is connected: 'shop'" in told(whole(late, RULE)[0])


def test_nobody_is_watched_unless_settings_say_so():
    """The broker does not know what is usual."""
    assert [] == of(look(film(silent, until=500, every=10)), RULE)


@pytest.mark.parametrize(
    "change", [{"since": 1e9}, {"name": "other"}, {"before": 0, "since": 0.0}], ids=["busy", "other", "never used"]
)
def test_others_are_left_alone(change):
    """One that gets messages, one that is not named, one that never got any."""
    assert [] == of(look(film(lambda t: silent(t, **change), until=500, every=10), thresholds=WATCHED), RULE)


def test_an_application_that_is_gone_is_said():
    """Nobody of its virtual host is there."""
    verdict = look(film(lambda t: silent(t, connected=False), until=400, every=10), thresholds=WATCHED)

    assert "no application of its vhost is connected" in whole(verdict, RULE)[0].summary


def test_a_queue_may_have_a_patience_of_its_own():
    """By an override."""
    longer = [{"queues": "orders", "values": {"publishers": {"silent_for": "8m"}}}]
    thresholds = Thresholds.model_validate({"publishers": {"silent_queues": ["orders"]}, "overrides": longer})

    assert [] == of(look(film(silent, until=400, every=10), thresholds=thresholds), RULE)


@pytest.mark.parametrize("key", ["silent_queues", "unroutable_by_design"])
def test_a_pattern_that_is_none_is_refused(key):
    """When the settings are read."""
    with pytest.raises(ValidationError) as caught:
        Thresholds.model_validate({"publishers": {key: ["(orders"]}})

    assert "'(orders' is not a regular expression" in str(caught.value)
