"""The runbooks, served by the exporter itself: the link of an alert must lead somewhere, without a wiki too."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path

from ackscope.cli import nearest
from exporter.web.http import TEXT, Request, Response

FOLDER = Path(__file__).parents[2] / "docs" / "runbooks"
"""In the repository, and beside the packages where ackscope is installed."""


_INDEX = "README"
_NAME = re.compile(r"[a-z0-9-]+")


def runbooks(folder: Path = FOLDER) -> dict[str, str]:
    """Rule -> page, all of them; the overview under ""."""
    return {"" if path.stem == _INDEX else path.stem: path.read_text() for path in sorted(folder.glob("*.md"))}


def runbook_page(pages: Mapping[str, str], request: Request) -> Response:
    """The page of `rule=NAME`; the overview without one."""
    rule = request.query.get("rule", "")
    page = pages.get(rule)
    if page is not None:
        return Response(page.encode(), TEXT)
    said = repr(rule) if _NAME.fullmatch(rule) else "of that name"
    line = f"no runbook {said}{nearest(rule, list(pages))}; /runbook lists them all\n"
    return Response(line.encode(), TEXT, status=HTTPStatus.NOT_FOUND)
