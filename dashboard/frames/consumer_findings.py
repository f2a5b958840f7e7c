"""Which findings name a consumer: its channel, its connection, its client or its queue. Pure."""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

import pandas as pd

from ackscope.reports import FindingReport, flat_reports
from dashboard.frames import finding_rows

_Places = Mapping[Hashable, Sequence[int]]


def with_findings(rows: pd.DataFrame, findings: Iterable[FindingReport]) -> pd.DataFrame:
    """Rows of `consumer_rows`, those with the worst finding first, and within a severity in their order.

    More columns: `finding` (rules that name the consumer, the most severe first; "" if none), `urgency` (0 critical,
    3 none). A finding about a queue names all consumers of it, unless it names some of them by client or channel.
    """
    channels, connections, clients = (_places(rows[name]) for name in ("channel", "connection", "client"))
    queues = _places(zip(rows["vhost"], rows["queue"], strict=True))
    vhosts = list(rows["vhost"])
    rules: list[list[FindingReport]] = [[] for _ in vhosts]
    for finding in flat_reports(tuple(findings)):
        subject, involved = finding.subject, finding.involved
        named = {
            *_at(channels, (*involved.channels, subject.name if subject.kind == "channel" else "")),
            *_at(connections, (*involved.connections, subject.name if subject.kind == "connection" else "")),
        } or {each for each in _at(clients, involved.clients) if subject.vhost in {None, vhosts[each]}}
        if subject.kind == "queue":
            mine = set(queues.get((subject.vhost, subject.name), ()))
            named = (named & mine) or mine
        for each in named:
            rules[each].append(finding)
    marks = [finding_rows.marks(mine) for mine in rules]
    marked = rows.assign(urgency=[urgency for urgency, _ in marks], finding=[text for _, text in marks])
    return marked.sort_values("urgency", kind="stable")


def _places(values: Iterable[Hashable]) -> _Places:
    """Value -> positions of its rows."""
    found: dict[Hashable, list[int]] = {}
    for place, value in enumerate(values):
        found.setdefault(value, []).append(place)
    return found


def _at(places: _Places, names: Collection[str]) -> Iterable[int]:
    """Positions of the rows with one of these names; "" names nothing."""
    return (place for name in names if name for place in places.get(name, ()))
