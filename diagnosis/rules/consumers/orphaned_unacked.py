"""orphaned-unacked (B19): a quorum queue counts messages as held that no channel holds.

Nobody will acknowledge them, and they are not delivered again; they also keep the queue's log from being cut. Reported
of quorum queues after a network disruption and an election (rabbitmq-server issue 15473). It cannot be brought about
in a lab: a unit test with such a film stands for it.
"""

from collections.abc import Iterator
from functools import partial
from shlex import quote

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import Link, RuleResult, View
from diagnosis.series import span, stretch
from diagnosis.window import Seen, Series
from diagnosis.words import amount, lasting, place, some, whose

NAME = "orphaned-unacked"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every quorum queue of which something is held."""
    for queue in view.queues:
        # Who polls holds messages too, on channels that the list of consumers does not tie to the queue.
        if queue.type != "quorum" or not queue.messages_unacked or queue.stats.get:
            continue
        links = view.links(queue)
        held = _held(view, links)
        if held is None:
            continue
        still = stretch(view.history(queue), partial(_both_more, held))
        orphans = min((seen.value.messages_unacked or 0) for seen in still) - held
        if orphans > 0 and span(still) >= view.limits(queue).consumers.orphaned_for:
            yield _finding(queue, links, orphans, held, still)


def _held(view: View, links: tuple[Link, ...]) -> int | None:
    """The most that its consumers' channels held lately; None where that is not known of one, or not of this queue."""
    found: dict[str, int] = {}
    for link in links:
        channel = link.channel
        if channel is None or channel.acks_uncommitted or view.queues_served(channel.name) != 1:
            return None
        lately = view.channel_history(channel.name)
        if any(seen.value.messages_unacked is None for seen in lately):
            return None
        found[channel.name] = max(seen.value.messages_unacked or 0 for seen in lately)
    return sum(found.values())


def _both_more(held: int, older: Seen[Queue], newer: Seen[Queue]) -> bool:
    return (older.value.messages_unacked or 0) > held and (newer.value.messages_unacked or 0) > held


def _finding(queue: Queue, links: tuple[Link, ...], orphans: int, held: int, still: Series[Queue]) -> FindingReport:
    return FindingReport(
        rule=NAME,
        severity=Severity.WARNING,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=still[0].at.iso(),
        summary=(
            f"{amount(orphans, 'message')} of queue {queue.name!r} ({queue.vhost!r}) count as held by a consumer, "
            "and no "
            f"channel holds them: for {lasting(span(still))} nobody can acknowledge them"
        ),
        cause=(
            "The queue's record of who holds what is out of step with the channels: known of quorum queues after a "
            "network disruption with a change of leader. These messages are stuck, and the queue's log grows behind "
            "them."
        ),
        evidence=(
            EvidenceReport(
                what="unacknowledged, by the queue",
                value=amount(queue.messages_unacked or 0, "message"),
                expected=f"{held}, as its channels say",
                source="/api/queues messages_unacknowledged",
            ),
            EvidenceReport(
                what="unacknowledged, by the channels of its consumers",
                value=f"{amount(held, 'message')} at most, lately",
                source="/api/channels messages_unacknowledged",
            ),
            EvidenceReport(what="its consumers", value=some(map(whose, links)) or "none", source="/api/consumers"),
        ),
        next_steps=(
            (
                "restart the applications that consume from it, one after the other: a consumer that goes gives "
                "back what "
                "counts as its own"
            ),
            (
                "if that does not help, let another replica lead: rabbitmq-queues rebalance quorum --queue-pattern "
                f"{quote(queue.name)}"
            ),
            f"look at the queue: rabbitmq-queues quorum_status {place(queue)}",
        ),
        runbook=runbook(NAME),
    )
