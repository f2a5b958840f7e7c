"""A hundred findings: the worst in full, a line each for those that follow, and no more laid out than is looked at."""

from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from dashboard.ui.finding_cards import CLOSED_CARDS, OPEN_CARDS
from tests.dashboard import answers
from tests.dashboard.answers import Exporter
from tests.dashboard.page_text import errors, words

Open = Callable[..., AppTest]


def test_what_is_closed_is_not_laid_out_until_it_is_opened(exporter: Exporter, rollups: Path, open_page: Open) -> None:
    """The first cards are there in full, the next by their headline, the rest behind one switch that says how many."""
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
