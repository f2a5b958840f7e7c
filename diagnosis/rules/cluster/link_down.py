"""link-down (E13): a shovel or a federation link does not run, so its messages are not transferred.

A shovel that cannot connect says "terminated" and why on 4.3, and "starting" forever on 3.10 and 4.0. One whose target
closes its channel, for example because the exchange does not exist, runs for a moment after each restart, and its
messages are redelivered. Links to the same address fail for the same reason, so they are one finding.

A wrong password does not correct itself: it is a warning as soon as messages wait for the link. A federation link gives
the error of its login. A shovel does not (seen on 3.10.8 and 4.3.6), so refused logins tell it: they begin with its
failure, and are as many as its retries. The timestamp of a link does not tell since when it fails: each retry sets it.
A queue from which it took messages before tells: nobody has taken any since, and the broker keeps samples of that.
Source: https://www.rabbitmq.com/docs/shovel#monitoring, https://www.rabbitmq.com/docs/federation#links
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from ackscope.findings import Certainty, Evidence, Finding, Involved, QueueRef, Severity, Subject, Unit, source
from ackscope.snapshot import Queue
from ackscope.topology import Link
from diagnosis.contract import Relation, RuleResult, View
from diagnosis.facts import queue_facts
from diagnosis.memo import per_view
from diagnosis.rules.cluster._shared.link_flow import SHOVEL, link_queues
from diagnosis.rules.cluster._shared.link_logins import refused_retries
from diagnosis.rules.consumers._shared.discarded import time_to_live
from diagnosis.rules.queues._shared.queue import MAX_NAMED
from diagnosis.series import delta, span, stretch
from diagnosis.window import Series, Timestamped

NAME = "link-down"

_TRANSFERS = {"running", "flow"}
"""States in which messages are transferred."""

_AMQP_ERROR = re.compile(r"[A-Z]+_[A-Z_]+ - ")
"""Beginning of an error text of AMQP, as in "NOT_FOUND - no exchange 'x' in vhost '/'"."""

_LOGIN_REFUSED = re.compile(r"auth_failure|login was refused", re.IGNORECASE)
"""Part of an error about the login itself, of AMQP 0-9-1 (`auth_failure`) or of AMQP 1.0 (`sasl_auth_failure`)."""

_NO_REASON = re.compile(r"\W*failed.to.connect|needed a restart", re.IGNORECASE)
"""Beginning of a text that gives no reason."""

_RECENT = 3
"""Of this many readings all but one fail while a link is restarted again and again."""

_Key = tuple[str, str, str, str]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all links to the same address that do not run."""
    down = [link for each in view.bridges if (link := _latest_failure(view, each)) is not None]
    if not down:
        return
    failing = {_key(link): _failing(view, _key(link)) for link in down}
    by_remote: dict[tuple[str, str, str], list[Link]] = defaultdict(list)
    for link in down:
        # A link starts for some seconds. One that has ended gives a reason, and that state does not pass.
        if span(failing[_key(link)]) >= view.thresholds.early or (link.state == "terminated" or link.reason):
            by_remote[(link.kind, link.vhost or "", _remote(link))].append(link)
    for _, links in sorted(by_remote.items()):
        links.sort(key=_key)
        yield _finding(view, links, max((failing[_key(link)] for link in links), key=span))


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


def _failing(view: View, key: _Key) -> Series[tuple[Link, ...]]:
    """Return the readings since a link fails; one in which it runs, between two others, is a restart."""

    def fails(links: Sequence[Link]) -> bool:
        return any(_key(link) == key and _fails(link) for link in links)

    run = stretch(view.window.readings("links"), lambda older, newer: fails(older.value) or fails(newer.value))
    return run if fails(run[0].value) else run[1:]


def _reason(view: View, links: Sequence[Link]) -> str | None:
    """Return why links fail: what the other broker said in one of the recent readings, else the latest reason.

    A shovel that fails again and again says so only in some readings; in others it "needed a restart".
    """
    recent = [link.reason for each in links for link in reversed(_readings(view, _key(each))) if link.reason]
    latest = next((link.reason for link in links if link.reason), None)
    said = next((reason for reason in recent if _AMQP_ERROR.match(reason)), latest)
    # A link that tries again is "starting" for a moment, without a reason.
    before = (each for link in links for each in reversed(_readings(view, _key(link))[-_RECENT:]) if _fails(each))
    return said or next((each.reason for each in before if each.reason), None)


def _login(view: View, links: Sequence[Link], reason: str | None, failing: Series[tuple[Link, ...]]) -> str | None:
    """Return how it is known that the login of the links is refused: "said" by the broker, "counted", or None."""
    if reason is not None and _LOGIN_REFUSED.search(reason):
        return "said"
    if reason is not None and not _NO_REASON.match(reason):
        return None
    readings = view.window.readings("links")
    ran = [seen.at for seen in readings if failing and seen.at.mono < failing[0].at.mono]
    return "counted" if ran and refused_retries(view, len(links), failed=(ran[-1], failing[0].at)) else None


def _waiting(view: View, sources: Iterable[tuple[str, str]]) -> list[Queue]:
    """Return the queues with messages that nobody takes while the link fails."""
    queues = [queue for place in sorted(sources) if (queue := view.queue(*place)) is not None]
    return [queue for queue in queues if queue.consumers == 0 and queue.messages_ready]


def _lost_after(queue: Queue) -> float | None:
    """Return after how many seconds a message in a queue expires and is lost; None if it is kept."""
    return None if queue.setting("dead-letter-exchange") is not None else time_to_live(queue)


def _unserved(view: View, waiting: Iterable[Queue]) -> Series[Queue]:
    """Return the readings since nobody takes messages from a queue of the links, of the one where that is longest.

    Only a queue from which messages were taken before counts: any other one may have waited before there was a link.
    """
    runs = (stretch(view.history(queue), _both_unserved) for queue in waiting if queue.stats.deliver_get)
    return max(runs, key=span, default=())


def _both_unserved(older: Timestamped[Queue], newer: Timestamped[Queue]) -> bool:
    idle = delta((older, newer), "deliver_get") == 0
    return idle and all(seen.value.consumers == 0 and bool(seen.value.messages_ready) for seen in (older, newer))


def _finding(view: View, links: Sequence[Link], failing: Series[tuple[Link, ...]]) -> Finding:
    limit, seconds = view.thresholds.cluster.link_for, span(failing)
    # A shovel that has ended no longer shows its queue.
    known = [each for link in links for each in _readings(view, _key(link))]
    sources = {place for each in known for place in link_queues(view, each)}
    sources |= _consumed(view, {SHOVEL + link.name for link in links if link.kind == "shovel"})
    first, waiting = links[0], _waiting(view, sources)
    reason = _reason(view, links)
    login = _login(view, links, reason, failing)
    unserved = _unserved(view, waiting)
    held_seconds = max(seconds, span(unserved))
    begins = [seen.at.iso() for seen in failing[:1]] + [seen.at.iso() for seen in unserved[:1]]
    lasting = held_seconds >= limit or (login == "said" and bool(waiting))
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
    if waiting:
        evidence.append(
            Evidence(
                key="waiting",
                value=sum(queue.messages_ready or 0 for queue in waiting),
                unit=Unit.MESSAGES,
                source=source("/api/queues", "messages_ready", "consumers"),
            )
        )
    addresses = [each for each in (first.source, first.destination) if each]
    if addresses:
        evidence.append(Evidence(key="addresses", source=configured, facts={"addresses": addresses}))
    lost_after = min((ttl for queue in waiting if (ttl := _lost_after(queue)) is not None), default=None)
    loses = lost_after is not None and held_seconds > lost_after
    return Finding(
        rule=NAME,
        severity=Severity.INFO if not lasting else Severity.CRITICAL if loses else Severity.WARNING,
        subject=Subject(kind="link", name=_remote(first), vhost=first.vhost, node=first.node),
        since=min(begins, default=None),
        facts={
            "kind": first.kind,
            "name": first.name,
            "remote": _remote(first),
            "vhost": first.vhost,
            "node": first.node,
            "state": first.state,
            "reason": reason,
            "restarts": any(not _fails(each) for each in _readings(view, _key(first))[-_RECENT:]),
            "static": first.type == "static",
            "login": login,
            "link_count": len(links),
            "waiting": sum(queue.messages_ready or 0 for queue in waiting),
            "held_seconds": held_seconds,
            "unserved_seconds": span(unserved),
            "lost_after_seconds": lost_after,
            "loses": loses,
            "waits_in": [queue_facts(queue) for queue in waiting[:MAX_NAMED]],
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


def _logins_of(view: View, finding: Finding) -> Iterable[Hashable]:
    """Yield the nodes and protocols whose refused logins are the retries of these links."""
    login, links = finding.facts["login"], finding.facts["link_count"]
    # That its queue is here shows that its upstream is this cluster. Another broker counts logins for itself.
    here = any(view.queue(place.vhost, place.name) is not None for place in finding.involved.queues)
    if isinstance(links, int) and (login == "counted" or (login == "said" and here)):
        yield from refused_retries(view, links)


def _login_of(_view: View, finding: Finding) -> Iterable[Hashable]:
    yield (finding.facts["node"], finding.facts["protocol"])


ITS_LOGINS = Relation(_logins_of, _login_of)
"""The consequence is about refused logins, as many as the link has tried."""
