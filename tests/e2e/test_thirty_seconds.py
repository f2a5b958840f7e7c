"""Twelve faults on a real broker: a woken person is at the next step in two clicks from the first screen."""

from collections.abc import Callable

import pytest

from tests.e2e.drama import FAULTS, Drama

pytestmark = [pytest.mark.integration, pytest.mark.browser, pytest.mark.slow]


@pytest.mark.timeout(1500)
def test_every_fault_is_named(drama: Drama) -> None:
    """By its own rule, about its own subject, with eleven held at once."""
    assert [] == drama.unnamed
    assert 12 == len(FAULTS)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_step_is_two_clicks_away(
    drama: Drama, fault: str, record_property: Callable[[str, object], None]
) -> None:
    """With the subject, the cause, all evidence, and each command letter by letter; seconds are told, not judged."""
    reading = drama.readings[fault]
    record_property("seconds", round(reading.seconds, 1))

    assert [] == reading.missing
    assert reading.clicks <= 2
    assert reading.commands
