"""Twelve faults on a real broker: a woken person is at the next step in two clicks from the first screen.

And every page during them: it shows what is sick, its address shows it again, everybody can read it, nothing leaks.
"""

from collections.abc import Callable

import pytest

from dashboard.pages import PAGES
from tests.dashboard.browser import chromium
from tests.e2e.drama import FAULTS, Drama, live
from tests.e2e.trouble import in_trouble
from tests.e2e.visits import ALARM, VISITS

pytestmark = [pytest.mark.integration, pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(2700)]

SEEN = (*(visit.title for visit in VISITS), ALARM.seen_as)


@pytest.fixture(scope="module")
def drama() -> Drama:
    """One broker, one exporter, one page, and all that was seen there; by then everything has ended."""
    with in_trouble() as trouble, chromium() as browser:
        return live(trouble, browser)


def test_every_fault_is_named(drama: Drama) -> None:
    """By its own rule, about its own subject, with eleven held at once."""
    assert [] == drama.unnamed
    assert 12 == len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_next_step_is_two_clicks_away(
    drama: Drama, fault: str, record_property: Callable[[str, object], None]
) -> None:
    """With the subject, the cause, all evidence, and each command letter by letter; seconds are reported only."""
    reading = drama.readings[fault]
    record_property("seconds", round(reading.seconds, 1))

    assert [] == reading.missing
    assert reading.clicks <= 2
    assert reading.commands


def test_no_page_is_left_out() -> None:
    """A page that is added is visited, too."""
    assert [page.title for page in PAGES] == [visit.title for visit in VISITS]


@pytest.mark.parametrize("title", SEEN)
def test_the_sick_object_is_shown(drama: Drama, title: str) -> None:
    """After what a person does on that page."""
    assert [] == drama.pages[title].missing


@pytest.mark.parametrize("title", SEEN)
def test_a_link_shows_the_same_to_somebody_else(drama: Drama, title: str) -> None:
    """The address of what is shown, opened in another browser: the same is chosen, the same is sick."""
    assert drama.pages[title].address
    assert [] == drama.pages[title].lost


@pytest.mark.parametrize("title", SEEN)
def test_everybody_can_read_it_with_faults_on_it(drama: Drama, title: str) -> None:
    """The accessibility engine axe-core finds nothing that is serious or critical."""
    assert {} == drama.pages[title].serious


def test_nobody_else_is_asked(drama: Drama) -> None:
    """No request and no socket leaves the page's own server; the page itself makes no error."""
    assert any(url.startswith("ws") for url in drama.asked)
    assert [] == drama.strangers
    assert [] == drama.complaints


def test_no_secret_is_in_any_payload(drama: Drama) -> None:
    """Neither in an answer nor in a frame of the socket, of all that twelve readings and every page brought."""
    assert drama.payloads > 500
    assert [] == drama.leaks
