"""slow-consumer (B03): consumers are full and acknowledge, but less than is published.

By Little's law the time that they hold a message is known without any timestamp. Where that is far above the round
trip of the probe, the handler takes it; where it is not, see prefetch_too_small.
"""

from collections.abc import Iterator

from ackscope.findings import Subject
from ackscope.reports import FindingReport, SuppressedReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers.load import Load, evidence, loads, quick, shortly
from diagnosis.usual_text import grows_as_usual
from diagnosis.words import amount, lasting, list_consumers, some

NAME = "slow-consumer"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that grows behind full consumers."""
    for load in loads(view):
        is_quick = quick(view, load)
        if not is_quick and load.usual is not None:
            yield SuppressedReport(rule=NAME, subject=_subject(load), because=grows_as_usual(load.usual))
        elif not is_quick:
            yield _finding(load, unsure=is_quick is None)


def _subject(load: Load) -> Subject:
    return Subject(kind="queue", name=load.queue.name, vhost=load.queue.vhost, node=load.queue.node)


def _finding(load: Load, *, unsure: bool) -> FindingReport:
    queue, held = load.queue, load.held
    who = some(repr(name) for name in load.names)
    cause = (
        f"{who} takes {shortly(load.each)} for one message: {amount(len(load.links), 'consumer')} of that pace "
        f"{'acknowledges' if len(load.links) == 1 else 'acknowledge'} {held.ack_rate:.1f} a second, and "
        f"{held.publish_rate:.1f} a second come."
    )
    if load.compared:
        cause += f" {load.compared}"
    if unsure:
        cause += (
            f" With prefetch {load.most} and no round trip measured it may as well be the way to it: see "
            "prefetch-too-small."
        )
    return FindingReport(
        rule=NAME,
        severity=load.severity,
        subject=_subject(load),
        since=load.grew[0].at.iso(),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) grows, for its consumers are too slow: "
            f"{amount(queue.messages_ready or 0, 'message')} waiting, {lasting(load.wait)} of work; {load.how_long}"
        ),
        cause=cause,
        evidence=tuple(evidence(load)),
        next_steps=(
            f"see who consumes: {list_consumers(queue)}",
            f"start more consumers: {load.needed} of this pace keep up, {len(load.links)} run",
            (
                f"find what the handler of {who} waits for in those {shortly(load.each)}: a database, a remote call, a "
                "lock"
            ),
            "a larger prefetch does not make the handler faster; it only moves messages from the queue into the client",
        ),
        runbook=runbook(NAME),
    )
