"""Fixtures of the dashboard tests: a fake exporter, rollups, and pages."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard.settings import PageSettings
from dashboard.ui import layout
from tests.dashboard import answers, rollup_files
from tests.dashboard.answers import Exporter

APP = Path(dashboard.__file__).with_name("app.py")

Open = Callable[..., AppTest]

_SCRIPT = """
from dataclasses import replace
from dashboard.frame import page_frame
from dashboard.pages import PAGES
page_frame.run([replace(page, path="" if page.path == {path!r} else page.path or "now") for page in PAGES])
"""
"""AppTest shows the first page only: the wanted one is made that."""


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest has no browser that draws."""
    monkeypatch.setattr(layout, "DRAWING_SECONDS", 0.0)


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    """A real HTTP server that responds like the exporter of one healthy cluster."""
    with answers.serving(answers.healthy()) as reported:
        yield reported


@pytest.fixture
def rollups(tmp_path: Path) -> Path:
    """Three hours of rollups of the cluster `shop`."""
    root = tmp_path / "rollups"
    rollup_files.write_story(root)
    return root


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Run the first page once: `open_page(url, rollups, cluster="shop")`; other arguments are query parameters."""

    def run(url: str, root: Path, **query: str) -> AppTest:
        for name, value in PageSettings(url, root).to_environ().items():
            monkeypatch.setenv(name, value)
        page = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in query.items():
            page.query_params[name] = value
        return page.run()

    st.cache_data.clear()
    st.cache_resource.clear()
    yield run
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def visit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """Run one page once: `visit(path, url, rollups, queue="orders")`; other arguments are query parameters."""

    def run(path: str, url: str, root: Path | None = None, *kept: Path | None, **query: str) -> AppTest:
        for name, value in PageSettings(url, root or tmp_path / "none", *kept).to_environ().items():
            monkeypatch.setenv(name, value)
        st.cache_data.clear()
        st.cache_resource.clear()
        page = AppTest.from_string(_SCRIPT.format(path=path), default_timeout=60)
        for name, value in query.items():
            page.query_params[name] = value
        return page.run()

    return run
