"""Hooks of the documentation site: they add the pages that are not in docs/, and make their links work.

README.md is the first page, the catalogue of rules is in catalogue/, and SECURITY.md, CONTRIBUTING.md and CHANGELOG.md
keep their names. A link to a file that is not part of the site becomes its path as text.
"""

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files
from mkdocs.utils.meta import get_data

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = "diagnosis/catalogue/"
MOVED = {
    "README.md": "index.md",
    **{name: name for name in ("SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")},
    **{f"{CATALOGUE}{page.name}": f"catalogue/{page.name}" for page in (ROOT / CATALOGUE).glob("*.md")},
}
"""Path in the repository -> path in the site, of the pages outside docs/."""

LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)]*)?\)")
IMAGE = re.compile(r"(!\[[^]]*\]\()([^)\s]+)(\))")
REFERENCE = re.compile(r"^(\[[^]]+\]: )([^#\s]+)()$", re.MULTILINE)


def on_files(files: Files, config: "MkDocsConfig") -> Files:
    """Add the pages of other folders."""
    for origin, target in MOVED.items():
        text, _front_matter = get_data((ROOT / origin).read_text())
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: Files) -> str:  # noqa: ARG001  mkdocs passes all
    """Point links at the pages of the site."""
    here = page.file.src_uri
    origin = next((path for path, target in MOVED.items() if target == here), f"docs/{here}")

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        moved = _in_site(posixpath.normpath(posixpath.join(posixpath.dirname(origin), target)), files)
        return text if moved is None else f"[{text}]({_relative(moved, here)}{anchor})"

    def target(found: re.Match[str]) -> str:
        moved = _in_site(posixpath.normpath(posixpath.join(posixpath.dirname(origin), found[2])), files)
        return found[0] if moved is None else f"{found[1]}{_relative(moved, here)}{found[3]}"

    return REFERENCE.sub(target, IMAGE.sub(target, LINK.sub(link, markdown)))


def _in_site(path: str, files: Files) -> str | None:
    """Path in the site of a file of the repository; None if the site does not have it."""
    for name in (path, f"{path}/README.md"):
        moved = MOVED.get(name, name.removeprefix("docs/") if name.startswith("docs/") else None)
        if moved is not None and files.get_file_from_path(moved) is not None:
            return moved
    return None


def _relative(target: str, here: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(here) or ".")
