"""A hundred findings: the most severe in full, then a line each, and nothing drawn that is not visible."""

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.ui.finding_cards import CLOSED_CARDS, OPEN_CARDS
from tests.dashboard import answers
from tests.dashboard.answers import Exporter
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]


def test_closed_cards_are_not_drawn(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """The first cards are shown in full, the next as a line, the rest behind a toggle with their number."""
    exporter.clusters = (answers.sick(findings=[answers.stuck(f"q{number:03d}") for number in range(100)]),)
    page = open_page(exporter.url, rollups)
    said = words(page)
    rest = 100 - OPEN_CARDS - CLOSED_CARDS

    assert [] == errors(page)
    assert OPEN_CARDS == said.count("Cause: ")
    assert "q024" in said
    assert "q025" not in said
    assert f"Show {rest} more findings" == page.toggle(key="all-findings").label

    page.toggle(key="all-findings").set_value(True).run()

    assert [] == errors(page)
    assert "q099" in words(page)
    assert OPEN_CARDS == words(page).count("Cause: ")
