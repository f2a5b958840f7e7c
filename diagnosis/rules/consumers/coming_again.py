"""requeue-loop, against what is usual: far more messages come again than at this hour as a rule, though not most do.

Some applications give messages back by design, so a share of deliveries that is repeated says nothing by itself. More
than three times as many as ever at this hour do, in every reading of the last while: a consumer that comes back after a
restart gets again what it held at once, and no more after that.
"""

from collections.abc import Iterator

from ackscope.baselines import Band
from ackscope.findings import Severity, Subject
from ackscope.measures import quantity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import View
from diagnosis.rules.consumers.rounds import delivered
from diagnosis.series import delta, span, steps
from diagnosis.usual_text import SOURCE, is_more, made_of, of_queue, span_of
from diagnosis.window import Seen, Series
from diagnosis.words import lasting, list_consumers

NAME = "requeue-loop"


def coming_again(view: View, queue: Queue) -> Iterator[FindingReport]:
    """A note on a queue of which far more comes again than usual; nothing where it is not known what is usual."""
    band = of_queue(view, queue, "redelivered")
    if not isinstance(band, Band):
        return
    limits = view.limits(queue)
    lately = _more(view, view.history(queue), limits.interval, band)
    if len(lately) > limits.consumers.requeue_intervals and span(lately) >= limits.consumers.requeue_for:
        yield _finding(queue, lately, band)


def _more(view: View, history: Series[Queue], seconds: float, band: Band) -> Series[Queue]:
    """The latest readings, so far apart, in each of which more came again than usual; empty where it did not."""
    found: list[Seen[Queue]] = []
    for older, newer in reversed(steps(history, seconds)):
        rate = delta((older, newer), "redeliver") / newer.at.since(older.at)
        if rate <= view.limits(newer.value).consumers.requeue_rate or not is_more(view, rate, band):
            break
        found = [older, *(found or [newer])]
    return tuple(found)


def _finding(queue: Queue, lately: Series[Queue], band: Band) -> FindingReport:
    seconds, again = span(lately), delta(lately, "redeliver")
    all_of_them = delivered(lately[-1].value) - delivered(lately[0].value)
    rate = quantity(again / seconds, "rate")
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="queue", name=queue.name, vhost=queue.vhost, node=queue.node),
        since=lately[0].at.iso(),
        summary=(
            f"Far more messages of queue {queue.name!r} ({queue.vhost!r}) come again than usual: {rate}, and "
            f"{span_of(band, 'redelivered')} is usual; seen over {lasting(seconds)}"
        ),
        cause=(
            "A consumer gives messages back (basic.nack or basic.reject with requeue), or consumers come and go and "
            "what they held comes again. Most still get through."
        ),
        evidence=(
            EvidenceReport(
                what="redelivered",
                value=f"{again} of {all_of_them} deliveries, {rate}",
                expected=f"{span_of(band, 'redelivered')} {made_of(band)}",
                source=f"/api/queues message_stats.redeliver, deliver_get; {SOURCE}",
            ),
            EvidenceReport(
                what="acknowledged",
                value=f"{delta(lately, 'ack')} in {lasting(seconds)}",
                source="/api/queues message_stats.ack",
            ),
        ),
        next_steps=(
            f"find the application: {list_consumers(queue)}",
            "read its log for what it gives back, and why: was it deployed lately?",
            "see who holds many: rabbitmqctl list_channels connection name consumer_count messages_unacknowledged",
        ),
        runbook=runbook(NAME),
    )
