"""Links from a finding to pages with more about its subject. Pure."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from ackscope.findings import Finding
from dashboard.format import readable
from dashboard.format.timezones import UTC

_TEXT = r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CONSUMER = re.compile(rf"consumer {_TEXT}(?: of {_TEXT})?")
"""How evidence tells a consumer: its tag, and the name of its client where that is known."""
_PEER = re.compile(r"(?P<host>.+):\d+ -> .+", re.DOTALL)
"""A connection as the broker names it."""


class RelatedLink(NamedTuple):
    """A link: path of the page, label (no foreign text), and query parameters."""

    page: str
    label: str
    query: dict[str, str]


def related_links(finding: Finding) -> Iterator[RelatedLink]:
    """Links for a finding, the most specific first."""
    subject = finding.subject
    if subject.kind == "queue":
        yield RelatedLink("queues", "Queue details", {"queue": subject.name, "vhost": subject.vhost or "/"})
    if subject.kind == "node":
        yield RelatedLink("nodes", "All nodes", {})
    client = _client(finding)
    if client:
        yield RelatedLink("consumers", "Consumers of this client", {"find": client})
    elif subject.kind == "queue":
        yield RelatedLink("consumers", "Its consumers", {"find": subject.name})
    began = readable.parse_iso(finding.since)
    if began is not None:
        at = f"{UTC.local(began):%Y-%m-%dT%H:%M}"
        yield RelatedLink("history", "What changed when it started", {"at": at, "around": "1h"})


def _client(finding: Finding) -> str | None:
    """The client that it is about, by a word that the page of consumers finds it by; None where it is about several."""
    if finding.subject.kind == "connection":
        peer = _PEER.fullmatch(finding.subject.name)
        return peer["host"] if peer else None
    found = {name for item in finding.evidence if (name := _told(item.what))}
    return found.pop() if len(found) == 1 else None


def _told(what: str) -> str | None:
    told = _CONSUMER.match(what)
    if told is None:
        return None
    try:
        name = ast.literal_eval(told[2] or told[1])
    except (SyntaxError, ValueError):
        return None
    return name if isinstance(name, str) and name.strip() else None
