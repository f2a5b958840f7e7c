import pytest
from pydantic import ValidationError

from ackscope.errors import ConfigError
from ackscope.settings import load
from diagnosis.thresholds import Thresholds


def test_durations_may_be_text():
    """Durations are read as everywhere in the configuration."""
    assert 90.0 == Thresholds.model_validate({"consumers": {"stuck_for": "1.5m"}}).consumers.stuck_for


def test_one_look_judges_by_shorter_times_only():
    """What two readings show is reported; limits on times that the broker itself reports do not change."""
    usual, once = Thresholds().consumers, Thresholds.as_if_lasting().consumers

    assert once.stuck_for < usual.stuck_for
    assert once.no_consumer_growing < usual.no_consumer_growing
    assert usual.stuck_long == once.stuck_long
    assert Thresholds().data_age == Thresholds.as_if_lasting().data_age


def test_a_pattern_that_is_none_is_refused_in_one_line(tmp_path):
    """The message names file, key and pattern."""
    file = tmp_path / "diagnosis.yml"
    file.write_text("benign_queue_patterns: ['(dlq']\n")

    with pytest.raises(ConfigError) as caught:
        load(Thresholds, file, {})

    assert f"{file}: benign_queue_patterns: '(dlq' is not a regular expression" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "setting",
    ["consumers.requeue_share", "consumers.requeue_acked", "publishers.overflow_relief", "consumers.stuck_patience"],
)
def test_shares_and_factors_have_bounds(setting):
    """A share of 0 would report everything."""
    group, name = setting.split(".")

    with pytest.raises(ValidationError):
        Thresholds.model_validate({group: {name: 0.0}})


def test_some_queues_are_judged_by_other_numbers():
    """Overrides match queue names by pattern; the last matching override counts, other queues keep the defaults."""
    slow = {"queues": "^batch\\.", "values": {"consumers": {"stuck_for": "10m"}}}
    slower = {"queues": "nightly", "vhosts": "^shop$", "values": {"consumers": {"stuck_for": "1h"}}}
    thresholds = Thresholds.model_validate({"overrides": [slow, slower], "consumers": {"stuck_long": "90s"}})

    def stuck_for(vhost, name):
        return thresholds.for_queue(vhost, name).consumers.stuck_for

    assert 600.0 == stuck_for("/", "batch.nightly")
    assert 3600.0 == stuck_for("shop", "batch.nightly")
    assert Thresholds().consumers.stuck_for == stuck_for("shop", "orders")
    assert 90.0 == thresholds.for_queue("/", "batch.1").consumers.stuck_long


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"consumer": {"stuck_for": 1}}, "no group 'consumer' of thresholds"),
        ({"consumers": {"stuk_for": 1}}, "stuk_for"),
        ({"consumers": {"requeue_share": 2}}, "requeue_share"),
    ],
)
def test_an_override_that_fits_nothing_is_refused_when_the_settings_are_read(values, said):
    """It is refused before the first queue is judged."""
    with pytest.raises(ValidationError) as caught:
        Thresholds.model_validate({"overrides": [{"queues": "x", "values": values}]})

    assert said in str(caught.value)
