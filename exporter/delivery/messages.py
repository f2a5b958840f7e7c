"""Messages: events as a JSON document and as text for people."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from ackscope.clock import Instant, iso
from ackscope.findings import Severity
from ackscope.format import duration, plural
from ackscope.printable import printable
from ackscope.reports import FindingReport, Step, as_document, flat_reports
from diagnosis.text import Cluster, render
from exporter.delivery.incidents import Brief, DeliveryEvent, EndReason, EventKind, FindingIncident, IncidentKey

ClusterOf = Callable[[str], Cluster]
"""Name of a cluster -> what templates name of it: version and management address."""

VERSION = 1
"""Version of the document. Fields may be added; a field is never removed or given another meaning within a version."""
BURST = 5
"""More events than this at once are one message."""
PER_MESSAGE = 100
"""Events of one message at most."""
_CONSEQUENCES = 10
_LINES = 20
_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryMessage:
    """What is sent at once.

    Attributes:
        id: the same if the same message is sent again.
        sent_at: seconds since 1970.
        document: the JSON document.
        title: one line.
        text: lines for people, which do not repeat the title.
        worst: the most urgent severity; None if all of its findings are over.
    """

    id: str
    sent_at: float
    events: tuple[DeliveryEvent, ...]
    document: dict[str, Any]
    title: str
    text: str
    worst: Severity | None


def batches(events: Sequence[DeliveryEvent]) -> Iterator[tuple[DeliveryEvent, ...]]:
    """Divide events into messages: one each, or all in one if there are many; what was missed is one summary."""
    missed = tuple(it for it in events if it.kind is EventKind.MISSED)
    others = tuple(it for it in events if it.kind is not EventKind.MISSED)
    size = PER_MESSAGE if len(others) > BURST else 1
    for group, length in ((others, size), (missed, PER_MESSAGE)):
        for first in range(0, len(group), length):
            yield group[first : first + length]


def report_of(incident: FindingIncident, cluster: Cluster) -> FindingReport | None:
    """The finding as text, with at most ten of its consequences; None if it was not seen since a restart."""
    if incident.finding is None:
        return None
    some = incident.finding.consequences[:_CONSEQUENCES]
    return render(replace(incident.finding, consequences=some), cluster)


def brief_of(incident: FindingIncident, cluster: Cluster) -> Brief:
    """What is stored of a finding, to report its end."""
    report = report_of(incident, cluster)
    if report is None:
        return incident.brief or {}
    document = as_document(report)
    wanted = ("rule", "severity", "subject", "since", "summary", "cause", "runbook", "impact", "certainty")
    return {
        **{name: document[name] for name in wanted},
        "steps": document["steps"][:_STEPS],
        "follows": [it.summary for it in flat_reports(report.consequences)[:_CONSEQUENCES]],
    }


def compose(
    receiver: str, events: Sequence[DeliveryEvent], cluster_of: ClusterOf, now: Instant, external_url: str | None
) -> DeliveryMessage:
    """Compose one message; its events have their `brief`."""
    shown = tuple(
        replace(it, incident=replace(it.incident, brief=brief_of(it.incident, cluster_of(it.incident.key.cluster))))
        for it in events
    )
    title, text = printable(_title(shown)), printable(_text(shown, external_url))
    name = _identity(receiver, shown)
    document = {
        "schema": "ackscope.delivery",
        "version": VERSION,
        "id": name,
        "receiver": receiver,
        "sent_at": now.iso(),
        "title": title,
        "text": text,
        "events": [_event(it, cluster_of(it.incident.key.cluster), external_url) for it in shown],
    }
    running = [it.incident.severity for it in shown if it.incident.ended is None]
    worst = min(running, key=lambda it: it.urgency, default=None)
    return DeliveryMessage(
        id=name, sent_at=now.wall, events=shown, document=document, title=title, text=text, worst=worst
    )


def trial_message(receiver: str, now: Instant) -> DeliveryMessage:
    """A message that tests a receiver; it is about no finding."""
    key = IncidentKey("ackscope", "test", "test", "", "ackscope notify")
    brief = {
        "rule": "test",
        "severity": Severity.INFO.value,
        "subject": {"kind": "test", "name": "ackscope notify", "vhost": None, "node": None},
        "since": now.iso(),
        "summary": f"Test notification of ackscope to the receiver {receiver!r}",
        "cause": "Somebody ran `ackscope notify`. Nothing is wrong.",
        "steps": [],
        "follows": [],
        "runbook": "docs/delivery.md",
    }
    incident = FindingIncident(key=key, began=now.wall, severity=Severity.INFO, brief=brief, ended=now.wall)
    event = DeliveryEvent(EventKind.TEST, incident)
    text = str(brief["cause"])
    document = {
        "schema": "ackscope.delivery",
        "version": VERSION,
        "id": _identity(receiver, (event,)),
        "receiver": receiver,
        "sent_at": now.iso(),
        "title": str(brief["summary"]),
        "text": text,
        "events": [_event(event, Cluster(), None)],
    }
    return DeliveryMessage(
        id=str(document["id"]),
        sent_at=now.wall,
        events=(event,),
        document=document,
        title=str(document["title"]),
        text=text,
        worst=None,
    )


def runbook_url(rule: str, external_url: str | None) -> str:
    """Where the exporter serves the runbook of a rule; its path in this repository without an address."""
    return f"{external_url}/runbook?rule={quote(rule)}" if external_url else f"diagnosis/catalogue/{rule}.md"


def _identity(receiver: str, events: Sequence[DeliveryEvent]) -> str:
    words = [receiver]
    for it in events:
        known = it.incident.delivered
        words += [
            it.kind.value,
            it.incident.key.fingerprint,
            f"{it.incident.began:.3f}",
            f"{known.at if known else 0:.3f}",
        ]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:32]


def _event(event: DeliveryEvent, cluster: Cluster, external_url: str | None) -> dict[str, Any]:
    it = event.incident
    full = report_of(it, cluster) if it.ended is None else None
    total = len(it.finding.consequences) if it.finding is not None else 0
    return {
        "event": event.kind.value,
        "key": it.key.fingerprint,
        "cluster": it.key.cluster,
        "severity": it.severity.value,
        "began_at": iso(it.began),
        "ended_at": None if it.ended is None else iso(it.ended),
        "reason": it.reason,
        "joined": it.joined.fingerprint if it.joined else None,
        "runbook_url": runbook_url(it.key.rule, external_url),
        "finding": as_document(full) if full is not None else it.brief,
        "consequences_omitted": max(0, total - _CONSEQUENCES) if full is not None else 0,
    }


# ---------------------------------------------------------------- text for people

_ENDINGS = {
    EndReason.ENDED: "resolved",
    EndReason.JOINED: "part of another finding",
    EndReason.MUTED: "muted",
    EndReason.UNROUTED: "no longer for this receiver",
    EndReason.REMOVED: "cluster removed",
}


def state_words(event: DeliveryEvent) -> str:
    """The state of a finding in a word or a few, such as `critical`, `still critical`, `resolved`."""
    it = event.incident
    if event.kind is EventKind.REMINDER:
        return f"still {it.severity}"
    if event.kind is EventKind.UPDATE and it.delivered is not None and it.delivered.severity is not it.severity:
        return f"now {it.severity}"
    if event.kind is EventKind.RESOLVE:
        return _ENDINGS[it.reason or EndReason.ENDED]
    if event.kind is EventKind.MISSED:
        return f"over, was {it.severity}"
    return it.severity.value


def _title(events: Sequence[DeliveryEvent]) -> str:
    clusters = ", ".join(sorted({it.incident.key.cluster for it in events}))
    if all(it.kind is EventKind.MISSED for it in events):
        number = plural(len(events), "finding")
        return f"[{clusters}] {number} began and ended while nothing could be delivered"
    if len(events) == 1:
        return f"[{clusters}] {state_words(events[0])}: {_summary(events[0].incident)}"
    counts = Counter(state_words(it) for it in events)
    return f"[{clusters}] {len(events)} findings: {', '.join(f'{number} {words}' for words, number in counts.items())}"


def _text(events: Sequence[DeliveryEvent], external_url: str | None) -> str:
    if len(events) == 1 and events[0].kind is not EventKind.MISSED:
        return _one(events[0], external_url)
    lines = [
        f"- {state_words(it)}: {_summary(it.incident)} ({it.incident.key.cluster}, {_times(it.incident)})"
        for it in events[:_LINES]
    ]
    more = len(events) - _LINES
    return "\n".join([*lines, f"- and {more:,} more"] if more > 0 else lines)


def _one(event: DeliveryEvent, external_url: str | None) -> str:
    it, brief = event.incident, event.incident.brief or {}
    if it.ended is not None:
        return f"From {_times(it)}."
    lines = [str(brief.get("cause", "")), ""]
    for number, step in enumerate((Step(**step) for step in brief.get("steps", ())), 1):
        lines += [f"{number}. {step.lead}", *([f"   {step.command}"] if step.command else [])]
    if follows := brief.get("follows"):
        lines += ["", "This also explains:", *(f"- {line}" for line in follows)]
    lines += ["", f"Since {brief.get('since') or iso(it.began)}. Runbook: {runbook_url(it.key.rule, external_url)}"]
    return "\n".join(lines)


def _summary(incident: FindingIncident) -> str:
    brief = incident.brief or {}
    return str(brief.get("summary") or incident.key.rule).removesuffix(".")


def _times(incident: FindingIncident) -> str:
    if incident.ended is None:
        return f"since {iso(incident.began)}"
    lasted = duration(max(0.0, incident.ended - incident.began))
    return f"{iso(incident.began)} to {iso(incident.ended)}, {lasted}"
