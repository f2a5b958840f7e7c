"""Findings as rows of a list: which ones, in which order, and what each row says. Pure."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ackscope.findings import Severity, Subject
from ackscope.reports import FindingReport, flat_reports
from dashboard.data.model import BacklogTrend
from dashboard.format import readable

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))
_NAMES = 3
# A backlog is steady if it changes by less than this share in the observed time.
_STEADY = 0.02
_ABOVE_QUEUES = frozenset({"node", "cluster"})
FOLD_ABOVE = 20
"""Rows that a screen shows; in a longer list, findings of one rule are folded."""
_FIRST_OF_RULE, _FOLD_AT_LEAST = 3, 3
CHILDREN = 20
"""Consequences listed under the chosen finding; its details have all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRow:
    """One line of the list.

    Attributes:
        address: identifies the finding in the address of the page and as a key.
        under: whether it is a consequence of the row above.
    """

    address: str
    finding: FindingReport
    under: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedRows:
    """One line that stands for more findings of a rule, all with the same severity.

    Attributes:
        fold: identifies the group in keys and in the state of the page.
        first: the first of them.
        number: how many findings the line folds, or can fold again if it is open.
    """

    fold: str
    first: FindingReport
    number: int
    open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which findings are listed; "" is all."""

    severity: str = ""
    kind: str = ""
    vhost: str = ""

    def admits(self, finding: FindingReport) -> bool:
        """Whether the finding or one of its consequences matches."""
        return any(self._matches(each) for each in flat_reports((finding,)))

    def _matches(self, finding: FindingReport) -> bool:
        return (
            (not self.severity or finding.severity == self.severity)
            and (not self.kind or finding.subject.kind == self.kind)
            and (not self.vhost or finding.subject.vhost == self.vhost)
        )


def addresses(findings: Sequence[FindingReport]) -> dict[str, FindingReport]:
    """All findings and consequences by their address, which depends on rule and subject only."""
    seen: Counter[str] = Counter()
    found = {}
    for finding in flat_reports(findings):
        digest = hashlib.sha256("\0".join((*finding.key, finding.subject.node or "")).encode()).hexdigest()[:10]
        address = f"{finding.rule}-{digest}"
        seen[address] += 1
        found[address if seen[address] == 1 else f"{address}-{seen[address]}"] = finding
    return found


def rows(
    by_address: Mapping[str, FindingReport], roots: Sequence[FindingReport], chosen: str | None, wanted: RowFilter
) -> list[FindingRow]:
    """The rows: findings as ranked, muted ones last; under the chosen one its consequences.

    Args:
        by_address: the findings by their address (`addresses`).
        roots: findings that are no consequences, ranked.
        chosen: address of the chosen finding.
        wanted: the filter.
    """
    address_of = {id(finding): address for address, finding in by_address.items()}
    selected = by_address.get(chosen or "")
    found: list[FindingRow] = []
    for finding in sorted(filter(wanted.admits, roots), key=lambda it: it.muted):
        found.append(FindingRow(address=address_of[id(finding)], finding=finding))
        below = flat_reports(finding.consequences)
        if selected is not None and any(each is selected for each in (finding, *below)):
            found += [FindingRow(address=address_of[id(each)], finding=each, under=True) for each in below[:CHILDREN]]
    return found


def folded(listed: Sequence[FindingRow], chosen: str | None, opened: Collection[str]) -> list[FindingRow | FoldedRows]:
    """A long list with only the first findings of each rule, so that every rule is in sight; a short one as it is.

    The chosen finding and consequences are never folded.

    Args:
        listed: result of `rows`.
        chosen: address of the chosen finding.
        opened: groups that are shown in full.
    """
    if len(listed) <= FOLD_ABOVE:
        return list(listed)
    sizes = Counter(_fold(row.finding) for row in listed if not row.under)
    found: list[FindingRow | FoldedRows] = []
    seen: Counter[str] = Counter()
    further: dict[str, list[FindingReport]] = {}
    places: dict[str, int] = {}
    fold = ""
    for row in listed:
        if not row.under:
            fold = _fold(row.finding)
            seen[fold] += 1
        short = sizes[fold] < _FIRST_OF_RULE + _FOLD_AT_LEAST
        if short or row.under or seen[fold] <= _FIRST_OF_RULE or row.address == chosen or fold in opened:
            found.append(row)
            places[fold] = len(found)
            if fold not in opened:
                continue
        if not short and not row.under and seen[fold] > _FIRST_OF_RULE:
            further.setdefault(fold, []).append(row.finding)
    # From the end, so that the earlier places stay right.
    for fold, findings in sorted(further.items(), key=lambda it: -places[it[0]]):
        line = FoldedRows(fold=fold, first=findings[0], number=len(findings), open=fold in opened)
        found.insert(places[fold], line)
    return found


def _fold(finding: FindingReport) -> str:
    return f"{finding.rule}-{'muted' if finding.muted else finding.severity.value}"


def queues_of(finding: FindingReport) -> set[tuple[str, str]]:
    """(vhost, name) of the queues that it is about, or that its exchange, client or virtual host makes sick.

    A finding about a node or the cluster names its largest queues, which are not sick by that.
    """
    subject = finding.subject
    own = {(subject.vhost or "", subject.name)} if subject.kind == "queue" else set()
    if subject.kind in _ABOVE_QUEUES:
        return own
    return own | {(it.vhost, it.name) for it in finding.involved.queues}


def marks(findings: Collection[FindingReport]) -> tuple[int, str]:
    """(urgency, rules) of an object from the findings about it, the most urgent rule first; urgency 3, "" without."""
    ranked = sorted(findings, key=lambda it: it.severity.urgency)
    urgency = ranked[0].severity.urgency if ranked else len(Severity)
    return urgency, ", ".join(dict.fromkeys(it.rule for it in ranked))


def age(finding: FindingReport, now: float) -> str:
    """How long ago the finding began, in one unit: `29 min`; "" if unknown."""
    began = readable.parse_iso(finding.since)
    if began is None:
        return ""
    seconds = max(0, int(now - began))
    return next((f"{seconds // size} {name}" for size, name in _UNITS if seconds >= size), f"{seconds} s")


def trend(subject: Subject, trends: Mapping[tuple[str, str], BacklogTrend]) -> str:
    """How the backlog of a queue changes: `↑ 140/min`, `↓ 20/s`, `steady`; "" if unknown."""
    seen = trends.get((subject.vhost or "", subject.name)) if subject.kind == "queue" else None
    if seen is None or seen.seconds <= 0:
        return ""
    change = seen.now - seen.before
    if abs(change) <= _STEADY * max(seen.now, seen.before, 1):
        return "steady"
    rate = abs(change) / seen.seconds
    text = f"{rate:,.0f}/s" if rate >= 1 else f"{rate * 60:,.0f}/min" if rate * 60 >= 0.5 else "<1/min"
    return f"{'↑' if change > 0 else '↓'} {text}"


def affected(findings: Iterable[FindingReport]) -> str:
    """For whom it is bad: `3 queues in vhosts /, shop; 1 node; clients billing, mailer`."""
    queues: dict[tuple[str, str], None] = {}
    nodes: dict[str, None] = {}
    clients: dict[str, None] = {}
    for each in flat_reports(tuple(findings)):
        if each.subject.kind == "queue":
            queues[each.subject.vhost or "", each.subject.name] = None
        if each.subject.kind == "node":
            nodes[each.subject.name] = None
        queues.update(((it.vhost, it.name), None) for it in each.involved.queues)
        clients.update(dict.fromkeys(each.involved.clients))
    vhosts = list(dict.fromkeys(vhost for vhost, _ in queues))
    parts = [
        f"{_number(queues, 'queue')} in {_named('vhost', vhosts)}" if queues else "",
        _number(nodes, "node") if nodes else "",
        _named("client", list(clients)) if clients else "",
    ]
    return "; ".join(filter(None, parts))


def _number(things: Collection[object], what: str) -> str:
    return f"{len(things):,} {what}{'' if len(things) == 1 else 's'}"


def _named(what: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
    return f"{what}{'' if len(names) == 1 else 's'} {', '.join(names[:_NAMES])}{more}"
