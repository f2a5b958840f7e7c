import pytest
from pydantic import ValidationError

from ackscope.errors import ConfigError
from ackscope.settings import load
from diagnosis.thresholds import Thresholds


def test_durations_may_be_text():
    """As everywhere in the configuration."""
    assert 90.0 == Thresholds.model_validate({"stuck_for": "1.5m"}).stuck_for


def test_one_look_judges_by_shorter_times_only():
    """What is seen in two readings is told; where the broker itself says since when, nothing changes."""
    usual, once = Thresholds(), Thresholds.one_shot()

    assert once.stuck_for < usual.stuck_for
    assert once.no_consumer_growing < usual.no_consumer_growing
    assert (usual.stuck_long, usual.data_age) == (once.stuck_long, once.data_age)


def test_a_pattern_that_is_none_is_refused_in_one_line(tmp_path):
    """The message names file, key and pattern."""
    file = tmp_path / "diagnosis.yml"
    file.write_text("benign_queue_patterns: ['(dlq']\n")

    with pytest.raises(ConfigError) as caught:
        load(Thresholds, file, {})

    assert f"{file}: benign_queue_patterns: '(dlq' is not a regular expression" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("setting", ["requeue_share", "requeue_acked", "overflow_relief", "stuck_patience"])
def test_shares_and_factors_have_bounds(setting):
    """A share of nothing would find everything."""
    with pytest.raises(ValidationError):
        Thresholds.model_validate({setting: 0.0})
