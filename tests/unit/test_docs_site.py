"""The documentation site: built from the repository, complete, and without requests to other hosts."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]*\ssrc=\"(?:https?:)?//|<link(?![^>]*rel=\"?canonical)[^>]*\shref=\"(?:https?:)?//"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a broken link ends the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    built = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert (0, "") == (built.returncode, built.stderr)
    return folder


def test_every_page_is_in_it(site: Path) -> None:
    """Each document, each rule, and the README as its first page."""
    expected = {f"{page.stem}.html" for page in (ROOT / "docs").glob("*.md")}
    expected |= {f"catalogue/{page.stem}.html" for page in (ROOT / "diagnosis/catalogue").glob("*-*.md")}
    expected |= {"index.html", "catalogue/index.html", "SECURITY.html", "CONTRIBUTING.html", "CHANGELOG.html"}

    assert set() == expected - {page.relative_to(site).as_posix() for page in site.rglob("*.html")}


def test_every_document_is_in_the_navigation(site: Path) -> None:
    """Rules have a list of their own."""
    navigation = (site / "index.html").read_text()

    assert [] == [page.name for page in (ROOT / "docs").glob("*.md") if f'href="{page.stem}.html"' not in navigation]


def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    """Scripts, styles, fonts and images are part of the site."""
    assert [] == [page.name for page in site.rglob("*.html") if LOADED.search(page.read_text())]
    assert [] == [file.name for file in site.rglob("*.css") if re.search(r"url\(\"?(?:https?:)?//", file.read_text())]
