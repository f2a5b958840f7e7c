"""Serves the runbooks, so that the links of alerts work without a wiki."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from ackscope.cli import nearest
from diagnosis.pages import FOLDER, pages
from exporter.web.http import TEXT, Request, Response

README = FOLDER / "README.md"


_NAME = re.compile(r"[a-z0-9-]+")


def runbooks() -> dict[str, str]:
    """Return the runbook of each rule by its name; the overview has the name ""."""
    return {"": README.read_text(), **{name: page.body for name, page in sorted(pages().items())}}


def runbook_page(texts: Mapping[str, str], request: Request) -> Response:
    """Return the runbook of `rule=NAME`, or the overview if no rule is given."""
    rule = request.query.get("rule", "")
    page = texts.get(rule)
    if page is not None:
        return Response(page.encode(), TEXT)
    said = repr(rule) if _NAME.fullmatch(rule) else "of that name"
    line = f"no runbook {said}{nearest(rule, list(texts))}; /runbook lists them all\n"
    return Response(line.encode(), TEXT, status=HTTPStatus.NOT_FOUND)
