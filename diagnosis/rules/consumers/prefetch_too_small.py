"""prefetch-too-small (B04): a fast consumer waits for the network most of the time, for it may hold too few messages.

The broker sees the same as of a slow consumer: full, and slower than messages come. What tells them apart is the
round trip, which only a client can measure: the rtt probe.
"""

from collections.abc import Iterator

from ackscope.findings import Subject
from ackscope.reports import FindingReport, InconclusiveReport, SuppressedReport, runbook
from diagnosis.contract import RuleResult, View
from diagnosis.rules.consumers.load import Load, evidence, loads, quick, shortly
from diagnosis.usual_text import grows_as_usual
from diagnosis.words import amount, lasting, list_consumers, some

NAME = "prefetch-too-small"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue that grows behind full consumers of a small prefetch."""
    unsure: list[str] = []
    for load in loads(view):
        is_quick = quick(view, load)
        if is_quick and load.usual is not None:
            yield SuppressedReport(rule=NAME, subject=_subject(load), because=grows_as_usual(load.usual))
        elif is_quick:
            yield _finding(load)
        elif is_quick is None and load.usual is None:
            unsure.append(repr(load.queue.name))
    if unsure:
        yield InconclusiveReport(
            rule=NAME,
            because=f"no probe measures the round trip, so a small prefetch and a slow handler look the same: "
            f"{some(unsure)}",
            needs="give the cluster an AMQP address for the probe rtt, best from where the application runs",
        )


def _subject(load: Load) -> Subject:
    return Subject(kind="queue", name=load.queue.name, vhost=load.queue.vhost, node=load.queue.node)


def _finding(load: Load) -> FindingReport:
    queue, held = load.queue, load.held
    who = some(repr(name) for name in load.names)
    trip = (
        f"{shortly(load.trip.seconds)} is the round trip of a probe" if load.trip else "no handler of note is that fast"
    )
    return FindingReport(
        rule=NAME,
        severity=load.severity,
        subject=_subject(load),
        since=load.grew[0].at.iso(),
        summary=(
            f"Queue {queue.name!r} ({queue.vhost!r}) grows, though its consumers are fast: their prefetch of "
            f"{load.most} "
            f"lets them wait for the network; {amount(queue.messages_ready or 0, 'message')} waiting, "
            f"{lasting(load.wait)} of work; {load.how_long}"
        ),
        cause=(
            f"{who} acknowledges a message {shortly(held.hold)} after it was sent ({trip}), and the broker sends "
            "the next "
            f"one only then: {amount(len(load.links), 'consumer')} with prefetch {load.most} cannot take more than "
            f"{held.ack_rate:.0f} a second."
        ),
        evidence=tuple(evidence(load)),
        next_steps=(
            f"see the prefetch of its consumers: {list_consumers(queue)}",
            (
                f"raise the prefetch of {who} to 100 to 300 (basic.qos before basic.consume) and restart it; "
                "for jobs that take seconds each keep it low"
            ),
            "measure what the best prefetch is here: ackscope probe prefetch --amqp URL",
        ),
        runbook=runbook(NAME),
    )
