"""The finding about a consumer that falls behind and whose queue counts no messages; its page is slow-consumer."""

from collections.abc import Iterable, Mapping
from typing import Any

from ackscope.findings import Certainty, Evidence, Fact, Finding, Severity
from ackscope.snapshot import Queue
from diagnosis.contract import ConsumerPath, View
from diagnosis.facts import queue_facts
from diagnosis.rules.consumers._shared.objects import client_names, involved_consumers, queue_subject
from diagnosis.series import span
from diagnosis.window import Series

_FROM_COUNTERS = (
    *(
        "max_priority",
        "only_one",
        "consumers_needed",
        "prefetch",
        "prefetch_total",
        "prefetch_advised",
        "unacked",
        "publish_rate",
        "ack_rate",
    ),
    *(
        "hold_seconds",
        "seconds_per_message",
        "backlog_seconds",
        "round_trip_seconds",
        "compared",
        "change",
        "batch",
        "lag",
        "behind",
    ),
)
"""Facts of that page that are None unless a protocol gives them."""


def backlog_finding(
    view: View,
    rule: str,
    queue: Queue,
    link: ConsumerPath,
    growing: Series[Any],
    *,
    facts: Mapping[str, Fact],
    evidence: Iterable[Evidence],
    urgent: bool = True,
) -> Finding:
    """Return the finding.

    Args:
        view: the view that is judged.
        rule: its name.
        queue: the queue or stream.
        link: its consumer.
        growing: the readings during which it fell behind.
        facts: what is known of it, by the names of the page.
        evidence: where that was read.
        urgent: whether it is a warning once it has lasted.
    """
    limits = view.limits(queue).consumers
    lasts = span(growing) >= limits.slow_for
    common: dict[str, Fact] = {
        "queue": queue_facts(queue),
        "clients": client_names((link,)),
        "consumers": 1,
        "ready": queue.messages_ready or 0,
        "warning_after_seconds": limits.slow_for,
        "mqtt": False,
        "suspects": [],
        "unlisted": False,
    }
    return Finding(
        rule=rule,
        severity=Severity.WARNING if lasts and urgent else Severity.INFO,
        subject=queue_subject(queue),
        since=growing[0].at.iso(),
        facts={**dict.fromkeys(_FROM_COUNTERS), **common, **facts},
        evidence=tuple(evidence),
        involved=involved_consumers((queue,), (link,)),
        certainty=Certainty.LIKELY if lasts else Certainty.EARLY,
        seen_seconds=span(growing),
    )
