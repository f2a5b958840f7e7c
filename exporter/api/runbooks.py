"""Serves the runbooks, so that the links of alerts work without a wiki."""

import re
from collections.abc import Mapping
from http import HTTPStatus

from ackscope.cli import nearest
from diagnosis.pages import FOLDER, pages
from exporter.web.http import TEXT, Request, Response

README = FOLDER / "README.md"


_NAME = re.compile(r"[A-Za-z0-9-]+")
_ALERT = re.compile(r"^### (Ackscope\w+)\n.*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def runbooks() -> dict[str, str]:
    """Return the runbook of each rule by its name; the overview has the name ""."""
    return {"": README.read_text(), **{name: page.body for name, page in sorted(pages().items())}}


def alert_runbooks() -> dict[str, str]:
    """Return what the overview says about each alert that is not about a finding, by the name of the alert."""
    return {found[1]: found[0] for found in _ALERT.finditer(README.read_text())}


def runbook_page(texts: Mapping[str, str], alerts: Mapping[str, str], request: Request) -> Response:
    """Return the runbook of `rule=NAME` or `alert=NAME`, or the overview if none is given."""
    known = alerts if "alert" in request.query else texts
    name = request.query.get("alert") or request.query.get("rule", "")
    page = known.get(name)
    if page is not None:
        return Response(page.encode(), TEXT)
    said = repr(name) if _NAME.fullmatch(name) else "of that name"
    line = f"no runbook {said}{nearest(name, list(known))}; /runbook lists them all\n"
    return Response(line.encode(), TEXT, status=HTTPStatus.NOT_FOUND)
