"""Links from a finding to pages with more about its subject. Pure."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ackscope.reports import FindingReport
from dashboard.format import readable
from dashboard.format.timezones import UTC

_PEER = re.compile(r"(?P<host>.+):\d+ -> .+", re.DOTALL)
"""The broker's name of a connection, `host:port -> host:port`."""


class RelatedLink(NamedTuple):
    """A link: path of the page, label (no foreign text), and query parameters."""

    page: str
    label: str
    query: dict[str, str]


def related_links(
    finding: FindingReport, consumes: Callable[[str], bool], *, has_history: bool
) -> Iterator[RelatedLink]:
    """Links for a finding, the most specific first.

    Args:
        finding: a finding.
        consumes: whether a client or host consumes.
        has_history: whether there is any history of its cluster.
    """
    subject = finding.subject
    if subject.kind == "queue":
        yield RelatedLink("queues", "Queue details", {"queue": subject.name, "vhost": subject.vhost or "/"})
    if subject.kind == "node":
        yield RelatedLink("nodes", "All nodes", {})
    client = _client(finding)
    if client and consumes(client):
        yield RelatedLink("consumers", "Consumers of this client", {"find": client})
    elif subject.kind == "queue":
        yield RelatedLink("consumers", "Its consumers", {"find": subject.name})
    elif client and subject.vhost is not None:
        yield RelatedLink("topology", "Topology of its virtual host", {"vhost": subject.vhost})
    began = readable.parse_iso(finding.since)
    if began is not None and has_history:
        at = f"{UTC.local(began):%Y-%m-%dT%H:%M}"
        yield RelatedLink("history", "What changed when it started", {"at": at, "around": "1h"})


def _client(finding: FindingReport) -> str | None:
    """A search text that finds the client on the page of consumers; None unless exactly one client is involved."""
    if finding.subject.kind == "connection":
        peer = _PEER.fullmatch(finding.subject.name)
        return peer["host"] if peer else None
    clients = set(finding.involved.clients)
    return clients.pop() if len(clients) == 1 else None
