"""Messages that the whole cluster drops without a route, where the broker lists no channels.

The Prometheus endpoint of each node counts what AMQP 0-9-1 clients published without `mandatory` and no queue took. It
names neither exchange nor client. Events that need no subscriber are dropped, too, so the number alone is information.
That a queue got messages until the loss began shows that they were meant for it.
"""

from collections.abc import Iterator

from ackscope.findings import Certainty, Evidence, Finding, Involved, Severity, Subject, Unit, source
from ackscope.snapshot import Overview, Queue
from diagnosis.contract import View
from diagnosis.ledger import SKEW_SECONDS
from diagnosis.probe_traffic import probe_traffic
from diagnosis.rules.publishers._shared.unroutable_facts import NOT_EXAMINED, publisher_facts
from diagnosis.rules.queues._shared.queue import MAX_NAMED, queue_refs
from diagnosis.series import delta, last, rising, span, steps, stretch
from diagnosis.window import Series, Timestamped

_MARGIN = 1.25
"""Factor for what our own probes drop, or what was lost before: their pace is a mean."""
_SCRAPED = 16.0
"""Seconds between two readings of the sum: from nodes with many queues it is read every 15 s."""
_SIMILAR = 0.3
"""Share of the loss that a queue must have got before it began."""


def unroutable_total(view: View, rule: str) -> Iterator[Finding]:
    """Yield the finding about the cluster if it drops messages steadily."""
    limits = view.thresholds.publishers
    history = stretch(view.window.readings("overview"), lambda older, newer: _dropped(older) <= _dropped(newer))
    step = max(view.thresholds.interval, _SCRAPED)
    own = _MARGIN * probe_traffic(view).unroutable
    # What was lost all the time, such as events without a subscriber, does not hide that more is lost since a moment.
    usual = min((_rate(pair) for pair in steps(history, step)), default=0.0)
    lossy = rising(_beyond(history, max(own, _MARGIN * usual)), step, int)
    fed = tuple(_fed_before(view, lossy)) if lossy else ()
    if not fed:
        lossy = rising(_beyond(history, own), step, int)
    seconds = span(lossy)
    if not lossy or seconds < max(view.thresholds.early, limits.unroutable_steps * view.thresholds.interval):
        return
    lost = lossy[-1].value - lossy[0].value
    rate = lost / seconds
    late = bool(fed) and seconds >= limits.unroutable_after and rate > limits.unroutable_rate
    yield Finding(
        rule=rule,
        severity=Severity.WARNING if late else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=lossy[0].at.iso(),
        facts={
            **NOT_EXAMINED,
            **publisher_facts(()),
            "cluster_wide": True,
            "nodes": len(view.metrics.nodes) if view.metrics else 0,
            "vhost": fed[0].vhost if fed else "",
            "fed": [each.name for each in fed][:MAX_NAMED],
            "exchange": None,
            "exchange_unknown": "not_listed",
            "amqp10": False,
            "suspects": [],
            "lost": lost,
            "lost_rate": rate,
            "warning_after_seconds": limits.unroutable_after,
        },
        evidence=(
            Evidence(
                key="total",
                value=lost,
                unit=Unit.MESSAGES,
                source=source("/metrics", "rabbitmq_global_messages_unroutable_dropped_total"),
            ),
        ),
        involved=Involved(queues=queue_refs(fed)),
        certainty=Certainty.EARLY if fed and not late else Certainty.LIKELY,
        seen_seconds=seconds,
    )


def _dropped(seen: Timestamped[Overview]) -> int:
    return seen.value.stats.drop_unroutable or 0


def _rate(pair: tuple[Timestamped[Overview], Timestamped[Overview]]) -> float:
    return (_dropped(pair[1]) - _dropped(pair[0])) / span(pair)


def _beyond(history: Series[Overview], rate: float) -> Series[int]:
    """Return what was dropped beyond so many messages a second since the first reading."""
    return tuple(Timestamped(seen.at, int(_dropped(seen) - rate * seen.at.since(history[0].at))) for seen in history)


def _fed_before(view: View, lossy: Series[int]) -> Iterator[Queue]:
    """Yield the queues that got messages until the loss began, and none since, also those that are gone."""
    began, rate = lossy[0].at, (lossy[-1].value - lossy[0].value) / span(lossy)
    for queue in (*view.queues, *view.gone_queues()):
        readings = view.listings(queue)
        before = tuple(seen for seen in readings if seen.at.mono <= began.mono)
        after = tuple(seen for seen in readings if seen.at.since(began) >= _SCRAPED + SKEW_SECONDS)
        # One that was silent before the loss began has another reason.
        recent = last(before[:-1] or before, view.thresholds.interval)
        came = delta(recent, "publish") / span(recent) if span(recent) else 0.0
        gone = view.queue(*queue.key) is None
        if not gone and span(after) < view.thresholds.interval:
            continue
        if came >= _SIMILAR * rate and delta(after, "publish") == 0:
            yield queue
