"""connection-limit-reached (X05): a limit of connections or channels is used up, or nearly.

Whoever connects beyond it is refused: 530 "connection limit (N) is reached" for a virtual host or a user.
Source: https://www.rabbitmq.com/docs/vhosts#limits, https://www.rabbitmq.com/docs/user-limits
"""

from collections import Counter
from collections.abc import Iterator
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, SuppressedReport, runbook
from ackscope.topology import Limit
from diagnosis.contract import RuleResult, View
from diagnosis.rules.clients.refusals import turned_away
from diagnosis.words import amount, client, lasting, some

NAME = "connection-limit-reached"

CONNECTIONS, CHANNELS = "max-connections", "max-channels"
_NODE_CHECK = "below-node-connection-limit"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Compare every limit with what is there; the check of the nodes tells of theirs (4.1 on)."""
    for limit in view.limits_set:
        if limit.name not in {CONNECTIONS, CHANNELS} or limit.value < 0:
            continue
        used = _used(view, limit)
        refused = turned_away(view)
        if limit.value == 0 and not (refused and refused[0]):
            yield SuppressedReport(
                rule=NAME,
                subject=_subject(limit),
                because="the limit is 0, so it is closed on purpose, and nobody asks to come in",
            )
        elif used >= view.thresholds.clients.limit_share * limit.value:
            yield _finding(view, limit, used)
    check = view.checks.get(_NODE_CHECK)
    if check is not None and check.ok is False:
        yield _of_node(view, check.reason or "")


def _of(view: View, limit: Limit) -> Iterator[tuple[str, int]]:
    """Client and channels of each connection that counts; our own probes count too."""
    for connection in view.part("connections"):
        if limit.subject == (connection.vhost if limit.scope == "vhost" else connection.user):
            yield client(connection, connection.name), connection.channels or 0


def _subject(limit: Limit) -> Subject:
    if limit.scope == "vhost":
        return Subject(kind="vhost", name=limit.subject, vhost=limit.subject)
    return Subject(kind="connection", name=f"user {limit.subject}")


def _used(view: View, limit: Limit) -> int:
    return sum(channels if limit.name == CHANNELS else 1 for _, channels in _of(view, limit))


def _finding(view: View, limit: Limit, used: int) -> FindingReport:
    full = used >= limit.value
    refused = turned_away(view)
    # A pool that was made as large as the limit harms nobody.
    harms = full and (refused is None or refused[0] > 0)
    what = limit.name.removeprefix("max-")
    whose = f"{'virtual host' if limit.scope == 'vhost' else 'user'} {limit.subject!r}"
    holders: Counter[str] = Counter()
    for name, channels in _of(view, limit):
        holders[name] += channels if limit.name == CHANNELS else 1
    top = sorted(holders.items(), key=lambda item: (-item[1], item[0]))
    evidence = [
        EvidenceReport(
            what=f"{what} of {whose}",
            value=f"{used} of {limit.value}",
            expected=f"below {view.thresholds.clients.limit_share:.0%} of the limit",
            source=f"/api/{limit.scope}-limits value, /api/connections",
        )
    ]
    if top:
        evidence.append(
            EvidenceReport(
                what="who has them",
                value=some(f"{name!r} {number}" for name, number in top),
                source="/api/connections client_properties.connection_name",
            )
        )
    if full and refused is not None and refused[0] > 0:
        evidence.append(
            EvidenceReport(
                what="refused after their login",
                value=f"{amount(refused[0], 'connection')} in {lasting(refused[1])}",
                expected="0",
                source="/api/auth/attempts auth_attempts_succeeded, /api/overview churn_rates",
            )
        )
    name = quote(limit.subject)
    raised = max(limit.value * 2, 10)
    document = quote(f'{{"{limit.name}": {raised}}}')
    command = f"set_vhost_limits -p {name}" if limit.scope == "vhost" else f"set_user_limits {name}"
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL if harms else Severity.WARNING,
        subject=_subject(limit),
        since=None,
        summary=(
            f"{whose} has {amount(used, what.removesuffix('s'))} of at most {limit.value}: "
            + ("whoever asks for one more is refused" if full else "soon the next one is refused")
        ),
        cause=(
            f"The limit {limit.name} of this {limit.scope} is used up: by more clients than it was made for, or by "
            "clients that open connections and do not close them."
        ),
        evidence=tuple(evidence),
        next_steps=(
            f"see who has them: rabbitmqctl list_connections user vhost peer_host client_properties | grep -F {name}",
            "if one client holds most of them, restart it: it leaks (connection-leak, channel-leak)",
            f"if all are needed, raise it: rabbitmqctl {command} {document}   # it replaces the others: name them too",
        ),
        runbook=runbook(NAME),
    )


def _of_node(view: View, reason: str) -> FindingReport:
    return FindingReport(
        rule=NAME,
        severity=Severity.CRITICAL,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"a node has all the connections that it takes: new ones are refused ({reason})",
        cause="The limit `connection_max` of the node is used up.",
        evidence=(
            EvidenceReport(
                what="the broker's own check",
                value=reason or "failed",
                expected="ok",
                source=f"/api/health/checks/{_NODE_CHECK}",
            ),
        ),
        next_steps=(
            "see who has them: rabbitmqctl list_connections user peer_host | sort | uniq -c | sort -n",
            "raise it until the next start: rabbitmqctl eval 'application:set_env(rabbit, connection_max, 20000).'",
            "for good: connection_max in rabbitmq.conf",
        ),
        runbook=runbook(NAME),
    )
