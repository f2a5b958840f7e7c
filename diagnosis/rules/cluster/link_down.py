"""link-down (E13): a shovel or a federation link does not run, so its messages are not transferred.

A shovel that cannot connect says "terminated" and why on 4.3, and "starting" forever on 3.10 and 4.0. One whose target
closes its channel, for example because the exchange does not exist, runs for a moment after each restart, and its
messages are redelivered. Links to the same address fail for the same reason, so they are one finding.
Source: https://www.rabbitmq.com/docs/shovel#monitoring, https://www.rabbitmq.com/docs/federation#links
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, QueueRef, Severity, Subject, source
from ackscope.topology import Link
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.memo import per_view
from diagnosis.rules.cluster._shared.link_flow import SHOVEL
from diagnosis.series import span, stretch

NAME = "link-down"

_TRANSFERS = {"running", "flow"}
"""States in which messages are transferred."""

_AMQP_ERROR = re.compile(r"[A-Z]+_[A-Z_]+ - ")
"""Beginning of an error text of AMQP, as in "NOT_FOUND - no exchange 'x' in vhost '/'"."""

_RECENT = 3
"""Of this many readings all but one fail while a link is restarted again and again."""

_Key = tuple[str, str, str, str]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all links to the same address that do not run."""
    down = [link for each in view.bridges if (link := _latest_failure(view, each)) is not None]
    if not down:
        return
    seconds = {_key(link): _seconds(view, _key(link)) for link in down}
    by_remote: dict[tuple[str, str, str], list[Link]] = defaultdict(list)
    for link in down:
        # A link starts for some seconds. One that has ended gives a reason, and that state does not pass.
        if seconds[_key(link)] >= view.thresholds.early or (link.state == "terminated" or link.reason):
            by_remote[(link.kind, link.vhost or "", _remote(link))].append(link)
    for _, links in sorted(by_remote.items()):
        links.sort(key=_key)
        yield _finding(view, links, max(seconds[_key(link)] for link in links))


def _fails(link: Link) -> bool:
    return link.state is not None and link.state not in _TRANSFERS


def _latest_failure(view: View, link: Link) -> Link | None:
    """Return a link as it is, or was in the previous reading if it was restarted again since; None if it works."""
    if _fails(link):
        return link
    before = _readings(view, _key(link))[-_RECENT:]
    failed = [each for each in before if _fails(each)]
    return failed[-1] if len(failed) >= _RECENT - 1 else None


def _readings(view: View, key: _Key) -> list[Link]:
    """Return a link at each reading, oldest first."""
    return per_view(view, _all_readings).get(key, [])


def _all_readings(view: View) -> dict[_Key, list[Link]]:
    found: dict[_Key, list[Link]] = defaultdict(list)
    for seen in view.window.readings("links"):
        for link in seen.value:
            found[_key(link)].append(link)
    return found


def _consumed(view: View, clients: set[str]) -> set[tuple[str, str]]:
    """Return the queues that connections with these client names consumed from, in any reading."""
    connections = {
        each.name for seen in view.window.readings("connections") for each in seen.value if each.client_name in clients
    }
    return {
        (each.vhost, each.queue)
        for seen in (view.window.readings("consumers") if connections else ())
        for each in seen.value
        if each.connection_name in connections
    }


def _key(link: Link) -> _Key:
    return (link.kind, link.vhost or "", link.name, link.local or "")


def _remote(link: Link) -> str:
    """What a link connects to: its upstream, or the shovel itself."""
    if link.kind == "federation":
        return link.upstream or link.source or link.name
    return link.name


def _seconds(view: View, key: _Key) -> float:
    """How long a link has not run; one reading in which it runs again, between two others, is a restart."""

    def fails(links: Sequence[Link]) -> bool:
        return any(_key(link) == key and _fails(link) for link in links)

    run = stretch(view.window.readings("links"), lambda older, newer: fails(older.value) or fails(newer.value))
    return span(run if fails(run[0].value) else run[1:])


def _reason(view: View, links: Sequence[Link]) -> str | None:
    """Return why links fail: what the other broker said in one of the recent readings, else the latest reason.

    A shovel that fails again and again says so only in some readings; in others it "needed a restart".
    """
    recent = [link.reason for each in links for link in reversed(_readings(view, _key(each))) if link.reason]
    latest = next((link.reason for link in links if link.reason), None)
    return next((reason for reason in recent if _AMQP_ERROR.match(reason)), latest)


def _finding(view: View, links: Sequence[Link], seconds: float) -> Finding:
    limit = view.thresholds.cluster.link_for
    # A shovel that has ended no longer shows its queue.
    known = [each for link in links for each in _readings(view, _key(link))]
    sources = {(each.vhost or "/", each.source_queue) for each in known if each.source_queue}
    sources |= _consumed(view, {SHOVEL + link.name for link in links if link.kind == "shovel"})
    lasting = seconds >= limit
    first = links[0]
    reason = _reason(view, links)
    if first.kind == "federation":
        state, configured = source("/api/federation-links", "status", "error"), source("/api/federation-links", "uri")
    else:
        state, configured = source("/api/shovels", "state", "reason"), source("/api/shovels", "src_uri", "dest_uri")
    evidence = [
        Evidence(
            key="link",
            value=link.state,
            source=state,
            facts={"link": link.local or link.name, "link_node": link.node, "link_reason": link.reason},
        )
        for link in links[:5]
    ]
    addresses = [each for each in (first.source, first.destination) if each]
    if addresses:
        evidence.append(Evidence(key="addresses", source=configured, facts={"addresses": addresses}))
    return Finding(
        rule=NAME,
        severity=Severity.WARNING if lasting else Severity.INFO,
        subject=Subject(kind="link", name=_remote(first), vhost=first.vhost, node=first.node),
        facts={
            "kind": first.kind,
            "name": first.name,
            "remote": _remote(first),
            "vhost": first.vhost,
            "node": first.node,
            "state": first.state,
            "reason": reason,
            "restarts": any(not _fails(each) for each in _readings(view, _key(first))[-_RECENT:]),
            "serves": sorted(link.local for link in links if link.local),
            "warning_after_seconds": limit,
        },
        certainty=Certainty.EARLY if not lasting else Certainty.CERTAIN if reason else Certainty.LIKELY,
        seen_seconds=seconds,
        evidence=tuple(evidence),
        involved=Involved(
            queues=tuple(QueueRef(*place) for place in sorted(sources)),
            nodes=tuple(sorted({link.node for link in links if link.node})),
        ),
    )


def _sources_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    yield from ((queue.vhost, queue.name) for queue in finding.involved.queues)
    if not finding.involved.queues and finding.subject.vhost is not None:
        # A shovel that has ended no longer shows its source, which is usually in its own virtual host.
        yield finding.subject.vhost


def _queue_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    if finding.subject.kind == "queue":
        yield (finding.subject.vhost, finding.subject.name)
        if not finding.involved.clients and not finding.involved.connections:
            yield finding.subject.vhost or ""


ITS_SOURCE = Relation(_sources_of, _queue_of)
"""The consequence is about a source of the link, or about a queue of its vhost with unknown consumers."""
