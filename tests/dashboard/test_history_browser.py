"""The page "History" in a real browser, with a queue whose name contains all kinds of markup."""

from pathlib import Path

import pytest

from dashboard.format.escape import visible
from dashboard.format.timeline_html import timeline_html
from tests.dashboard import answers
from tests.dashboard.answers import HOSTILE
from tests.dashboard.browser import chromium, settle
from tests.dashboard.command import serving_page
from tests.dashboard.history_files import write_story
from tests.dashboard.test_gantt import episode, report
from tests.dashboard.test_timeline import SHIFT, note

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WINDOWS = {"desk": (1280, 900), "phone": (390, 844)}


def test_it_fits_a_desktop_and_a_phone(tmp_path: Path) -> None:
    """The first change is on the first screen; nothing is wider; names do nothing; no external requests."""
    root = tmp_path / "rollups"
    write_story(root, HOSTILE)
    with (
        answers.serving(answers.healthy()) as exporter,
        serving_page(exporter.url, root, tmp_path) as served,
        chromium() as browser,
    ):
        for name, (width, height) in WINDOWS.items():
            asked, complaints = [], []
            page = browser.new_page(viewport={"width": width, "height": height})
            page.on("request", lambda sent, asked=asked: asked.append(sent.url))
            page.on("pageerror", lambda error, complaints=complaints: complaints.append(str(error)))
            page.goto(f"{served.url}/history?cluster=shop&around=1h")
            settle(page)
            page.screenshot(path=str(tmp_path / f"{name}.png"))
            first = page.get_by_text("First change").first.bounding_box()
            shown = page.inner_text("[data-testid=stMain]")

            assert first["y"] < height
            assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
            assert page.evaluate("() => window.hurt === undefined")
            assert 0 == page.locator("img[src=x], [href^=javascript], .katex, [data-testid=stMain] script").count()
            assert shown.count(visible(HOSTILE)) > 8
            assert "\u202e" not in shown
            assert [] == complaints
            assert [] == [url for url in asked if not url.startswith((served.url, "data:", "blob:"))]
            page.close()


def test_the_exported_timeline_fits_a_desktop_and_a_phone_and_does_nothing(tmp_path: Path) -> None:
    """From a file, with hostile names: it requests nothing, runs nothing, and everything is readable."""
    file = tmp_path / "timeline.html"
    hostile = {"name": HOSTILE, "vhost": HOSTILE, "rule": HOSTILE, "summary": HOSTILE}
    shown = report(episode(1, 4, **hostile), episode(9), notes=[note(text=HOSTILE)], shifts=[SHIFT], cluster=HOSTILE)
    file.write_text(timeline_html(shown))
    with chromium() as browser:
        for name, (width, height) in WINDOWS.items():
            asked, complaints = [], []
            page = browser.new_page(viewport={"width": width, "height": height})
            page.on("request", lambda sent, asked=asked: asked.append(sent.url))
            page.on("console", lambda said, complaints=complaints: complaints.append(said.text))
            page.goto(file.as_uri())
            page.screenshot(path=str(tmp_path / f"timeline-{name}.png"), full_page=True)

            assert [file.as_uri()] == asked
            assert [] == complaints
            assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
            assert page.evaluate("() => window.hurt === undefined")
            assert 2 == page.locator("svg rect").count()
            assert page.inner_text("body").count(visible(HOSTILE)) > 5
            page.close()
