"""Acknowledge, own and mute on the page, with the exporter's own routes and store."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frames.finding_rows import addresses
from diagnosis.text import render
from exporter.triage.store import TriageStore
from exporter.web.server import HttpServer
from tests.dashboard.answers import HOSTILE
from tests.dashboard.page_text import errors, words
from tests.unit.exporter.made import finding
from tests.unit.exporter.triage.served import Served

Open = Callable[..., AppTest]
(ADDRESS,) = addresses([render(finding())])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the store."""
    return tmp_path / "triage.json"


@pytest.fixture
def exporter_url(path: Path) -> Iterator[str]:
    """An exporter with one finding in `shop`, without a broker."""
    server = HttpServer(("127.0.0.1", 0), Served(path).routes)
    server.start()
    yield server.url
    server.stop()


def test_a_finding_is_acknowledged_for_all_viewers(
    exporter_url: str, tmp_path: Path, path: Path, open_page: Open
) -> None:
    """A click is enough; another one withdraws it."""
    page = open_page(exporter_url, tmp_path / "none", cluster="shop")
    page.button(key=f"acknowledge-{ADDRESS}").click().run()
    said, other = words(page), words(open_page(exporter_url, tmp_path / "none", cluster="shop"))
    stored = TriageStore(path, ["shop"]).of("shop")
    page.button(key=f"acknowledge-{ADDRESS}").click().run()

    assert [] == errors(page)
    assert "Acknowledged at " in said
    assert "Acknowledged at " in other
    assert {finding().key} == stored.keys()
    assert "Acknowledged at " not in words(page)


def test_a_finding_is_muted_with_hostile_text(exporter_url: str, tmp_path: Path, path: Path, open_page: Open) -> None:
    """Names and reasons are shown literally."""
    name, reason = HOSTILE[:80].strip(), HOSTILE[-100:].strip()
    page = open_page(exporter_url, tmp_path / "none", cluster="shop")
    page.text_input(key=f"mute-reason-{ADDRESS}").input(reason)
    page.text_input(key=f"mute-by-{ADDRESS}").input(name)
    submit(page, "Mute").click().run()
    (said,) = TriageStore(path, ["shop"]).of("shop").values()

    assert [] == errors(page)
    assert (name, reason) == (said.muted_by, said.mute_reason)
    assert "Nothing wrong, 1 muted" in page.header[0].value
    assert "\u202e" not in words(page)

    page.button(key=f"unmute-{ADDRESS}").click().run()

    assert "1 warning" in page.header[0].value
    assert {} == TriageStore(path, ["shop"]).of("shop")


def test_a_finding_gets_an_owner(exporter_url: str, tmp_path: Path, path: Path, open_page: Open) -> None:
    """Shown in the list too."""
    page = open_page(exporter_url, tmp_path / "none", cluster="shop")
    page.text_input(key=f"owner-{ADDRESS}").input("bob")
    submit(page, "Save owner").click().run()

    assert [] == errors(page)
    assert "Owner: bob." in words(page)
    assert "` bob `" in page.button(key=f"row-{ADDRESS}").label


def test_without_a_file_there_are_no_buttons(tmp_path: Path, open_page: Open) -> None:
    """The exporter says so in its findings."""
    server = HttpServer(("127.0.0.1", 0), Served(None).routes)
    server.start()
    try:
        said = words(open_page(server.url, tmp_path / "none", cluster="shop"))
    finally:
        server.stop()

    assert "no-consumer" in said
    assert "Acknowledge" not in said


def submit(page: AppTest, label: str) -> object:
    """The button that sends a form."""
    return next(each for each in page.button if each.label == label and (each.key or "").startswith("FormSubmitter"))
