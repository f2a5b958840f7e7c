"""quorum-queue-under-replicated (E06): quorum queues with fewer replicas than they should have.

Two shapes, told apart by the subject: replicas that are away from one node (a node), and queues that were declared
with fewer than three members in a cluster of three nodes or more (a virtual host): losing one node stops those.
The check `node-is-quorum-critical` is not used: it fails for every queue with a single member, and names no queue.
Source: https://www.rabbitmq.com/docs/quorum-queues#member-management
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.rules.cluster.quorum_queue_minority import minority
from diagnosis.rules.cluster.standing import absence, down, gone, listed, missing, other, tail, told
from diagnosis.series import span
from diagnosis.words import amount, lasting, some

NAME = "quorum-queue-under-replicated"

ENOUGH = 3
"""Members of which one may be lost."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Yield a finding for each node without its replicas, and one for each virtual host with too few members."""
    away: dict[str, list[Queue]] = defaultdict(list)
    small: dict[str, list[Queue]] = defaultdict(list)
    stopped = down(view)
    for queue in view.all_queues:
        if queue.type != "quorum" or not queue.members:
            continue
        if not minority(queue, stopped):
            # Without a majority it is stopped already: quorum-queue-minority.
            for name in missing(queue, stopped):
                away[name].append(queue)
        if len(queue.members) < ENOUGH <= len(view.nodes):
            small[queue.vhost].append(queue)
    for name, queues in sorted(away.items()):
        found = _away(view, name, sorted(queues, key=lambda queue: queue.key), stopped)
        if found is not None:
            yield found
    for vhost, queues in sorted(small.items()):
        yield _small(view, vhost, sorted(queues, key=lambda queue: queue.key))


def _away(view: View, name: str, queues: Sequence[Queue], stopped: frozenset[str]) -> FindingReport | None:
    limits = view.thresholds
    # The longest of some will do: what is missing at one node went at the same moment.
    absent = max((tail(view.history(queue), lambda q: name in missing(q)) for queue in queues[:50]), key=span)
    since = absent[0].at if absent else None
    seconds = span(absent)
    if name in gone(view) and span(absence(view, name)) > seconds:
        since, seconds = absence(view, name)[0].at, span(absence(view, name))
    if seconds < (limits.cluster.seen if name in stopped else limits.early):
        return None
    late = seconds >= limits.cluster.replica_missing_for
    helper = other(view, name)
    where = _why(view, name, stopped)
    waits = "" if late else f"; warning after {lasting(limits.cluster.replica_missing_for)}"
    first = queues[0]
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="node", name=name, node=name),
        since=since.iso() if since else None,
        summary=f"No replica online at {name!r} of {told(queues, 'quorum queue')}: one more loss may stop "
        f"{'it' if len(queues) == 1 else 'them'}{waits}",
        cause=f"Replicas at {name!r} do not answer: {where}.",
        evidence=(
            EvidenceReport(
                what=f"replicas of {first.name!r} online",
                value=f"{len(first.members or ()) - len(missing(first, stopped))} of {len(first.members or ())}",
                expected=f"{len(first.members or ())}",
                source="/api/queues members, online",
            ),
            EvidenceReport(what="queues", value=listed(queues), source="/api/queues members, online"),
        ),
        next_steps=(
            (
                f"see what the replica says: rabbitmq-queues -n {helper} quorum_status --vhost {quote(first.vhost)} "
                f"{quote(first.name)}"
            ),
            f"start the node {name}, or where it runs, read its log: rabbitmq-diagnostics -n {name} log_tail -N 200",
            (
                f"a replica that does not come back is made anew: rabbitmq-queues -n {helper} delete_member --vhost "
                f"{quote(first.vhost)} {quote(first.name)} {name}, then add_member with the same words"
            ),
            "do not stop another node before: rabbitmq-diagnostics -n NODE check_if_node_is_quorum_critical",
        ),
        runbook=runbook(NAME),
    )


def _why(view: View, name: str, stopped: frozenset[str]) -> str:
    if name in stopped:
        return "the node does not run"
    node = view.node(name)
    if node is not None and node.being_drained:
        return "the node is in maintenance, which stops them"
    # 3.10 stops them in maintenance too, and does not tell of it.
    untold = ", or it is in maintenance" if node is not None and node.being_drained is None else ""
    return f"the node runs; they start up late, or failed{untold}"


def _small(view: View, vhost: str, queues: Sequence[Queue]) -> FindingReport:
    counts = sorted({len(queue.members or ()) for queue in queues})
    free = some(sorted(node.name for node in view.nodes if node.name not in (queues[0].members or ())))
    waiting = sum(queue.messages or 0 for queue in queues)
    pattern = quote(f"^{queues[0].name}$") if len(queues) == 1 else "'.*'"
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="vhost", name=vhost),
        since=None,
        summary=f"{amount(len(queues), 'quorum queue')} in {vhost!r} {'has' if len(queues) == 1 else 'have'} only "
        f"{' or '.join(map(str, counts))} of {len(view.nodes)} possible members: losing one node stops "
        f"{'it' if len(queues) == 1 else 'them'}",
        cause="They were declared while fewer nodes were in the cluster, or with a small initial group size; members "
        "are not added by themselves.",
        evidence=(
            EvidenceReport(
                what="queues with too few members",
                value=listed(queues),
                expected=f"{ENOUGH} members",
                source="/api/queues members",
            ),
            EvidenceReport(what="messages in them", value=f"{waiting}", source="/api/queues messages"),
        ),
        next_steps=(
            (
                f"add members (at {free}): rabbitmq-queues grow NODE all --vhost-pattern {quote(f'^{vhost}$')} "
                f"--queue-pattern {pattern}"
            ),
            (
                "later (3.13 and newer): quorum_queue.continuous_membership_reconciliation.enabled = true in "
                "rabbitmq.conf, "
                "so that members are added when nodes join"
            ),
        ),
        runbook=runbook(NAME),
    )
