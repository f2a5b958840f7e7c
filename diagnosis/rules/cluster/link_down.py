"""link-down (E13): a shovel or a federation link does not run, so that messages stay where they are.

A shovel that cannot connect says "terminated" and why on 4.3, and "starting" without end on 3.10 and 4.0.
What goes to the same place fails for the same reason: it is one finding, by the address.
Source: https://www.rabbitmq.com/docs/shovel#monitoring, https://www.rabbitmq.com/docs/federation#links
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.topology import Link
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.standing import tail
from diagnosis.series import span
from diagnosis.words import lasting, some

NAME = "link-down"

RUNS = {"running", "flow"}
"""States in which messages move."""

Key = tuple[str, str, str, str]


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield one finding for all links to the same place that do not run."""
    limits = view.thresholds
    bad = [link for link in view.bridges if link.state is not None and link.state not in RUNS]
    if not bad:
        return
    lasts = {_key(link): _seconds(view, _key(link)) for link in bad}
    places: dict[tuple[str, str, str], list[Link]] = defaultdict(list)
    for link in bad:
        # One that starts does so for seconds. What has ended says why, and that is no passing state.
        if lasts[_key(link)] >= limits.early or (link.state == "terminated" or link.reason):
            places[(link.kind, link.vhost or "", _peer(link))].append(link)
    for _, links in sorted(places.items()):
        links.sort(key=_key)
        yield _finding(view, links, max(lasts[_key(link)] for link in links))


def _key(link: Link) -> Key:
    return (link.kind, link.vhost or "", link.name, link.local or "")


def _peer(link: Link) -> str:
    """What a link reaches out to."""
    if link.kind == "federation":
        return link.upstream or link.source or link.name
    return link.name


def _seconds(view: View, key: Key) -> float:
    def fails(links: Sequence[Link]) -> bool:
        return any(_key(link) == key and link.state not in RUNS for link in links)

    return span(tail(view.window.readings("links"), fails))


def _finding(view: View, links: Sequence[Link], seconds: float) -> FindingReport:
    late = seconds >= view.thresholds.cluster.link_for
    first = links[0]
    federation = first.kind == "federation"
    reason = next((link.reason for link in links if link.reason), None)
    what = f"Federation from upstream {_peer(first)!r}" if federation else f"Shovel {first.name!r}"
    serves = sorted(link.local for link in links if link.local)
    for_whom = f" for {some(serves)}" if serves else ""
    evidence = [
        EvidenceReport(
            what=f"{link.kind} {link.local or link.name!r}" + (f" at {link.node}" if link.node else ""),
            value=f"{link.state}" + (f": {link.reason}" if link.reason else ""),
            expected="running",
            source="/api/federation-links status, error" if federation else "/api/shovels state, reason",
        )
        for link in links[:5]
    ]
    if first.source or first.destination:
        way = " to ".join(each for each in (first.source, first.destination) if each)
        evidence.append(EvidenceReport(what="addresses", value=way, source="/api/shovels, /api/federation-links"))
    patience = "" if late else f"; it tries again every few seconds, warning after {lasting(_limit(view))}"
    blocked = first.state == "blocked"
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="link", name=_peer(first), vhost=first.vhost, node=first.node),
        since=None,
        summary=f"{what}{for_whom} in {first.vhost or 'all vhosts'!r} does not run ({first.state}): nothing is moved"
        + patience,
        cause=(
            "The other broker holds it back: it has a memory or disk alarm."
            if blocked
            else f"The broker says: {reason}."
            if reason
            else "It cannot reach the other broker, or was refused there: address, user, password, vhost, TLS."
        ),
        evidence=tuple(evidence),
        next_steps=_steps(first),
        runbook=runbook(NAME),
    )


def _limit(view: View) -> float:
    return view.thresholds.cluster.link_for


def _steps(link: Link) -> tuple[str, ...]:
    node = f"-n {link.node} " if link.node else ""
    name, vhost = quote(link.name), quote(link.vhost or "/")
    look = "federation_status --only-down" if link.kind == "federation" else "shovel_status"
    again = (
        f"rabbitmqctl {node}restart_federation_link LINK_ID (federation_status tells it)"
        if link.kind == "federation"
        else f"rabbitmqctl {node}restart_shovel --vhost {vhost} {name}"
    )
    kind = "federation-upstream" if link.kind == "federation" else "shovel"
    return (
        f"see what it says: rabbitmqctl {node}{look}",
        "try its address from that node, with its user and vhost: ackscope probe handshake --amqp URL --for 5s",
        f"see how it is set up: rabbitmqctl list_parameters -p {vhost} | grep -F {kind}",
        f"when the other side is well again, it connects by itself; to try at once: {again}",
    )
