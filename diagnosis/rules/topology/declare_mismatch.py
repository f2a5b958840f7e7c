"""declare-mismatch (G01): an application declares a queue with other properties than it has, is refused, and retries.

The broker answers 406 PRECONDITION_FAILED "inequivalent arg ..." and closes the channel; the application never gets to
consume or publish. The cluster's churn counts refused declarations too. So a loop with one declaration per
cycle that the broker ends with an error is this, unless the error is that of a locked exclusive queue (405) or of a
limit of queues (406), which have rules of their own. A client that closes its whole connection at the error shows as
connection-churn.

The declarations are those of the whole cluster. Where several clients loop, such as the instances of a new release,
they count if they are enough for all of them, and if a queue that nobody consumes has a name and arguments about which
the broker would send an error of this length.
Source: https://www.rabbitmq.com/docs/queues#property-equivalence
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace

from ackscope.findings import Finding, QueueRef, Severity
from ackscope.snapshot import Queue
from diagnosis.churn_loops import ChurnLoop, churn_loops, cluster_cycles, text_bytes
from diagnosis.contract import RuleResult, View
from diagnosis.purpose import was_consumed
from diagnosis.relations import both
from diagnosis.rules.clients._shared.loops import MIN_PER_CYCLE, loop_evidence, loop_facts, loop_involved
from diagnosis.rules.clients._shared.queue_limits import refused_by_limit
from diagnosis.rules.queues._shared.queue import certainty
from diagnosis.rules.topology.exclusive_name_locked import locked_queues

NAME = "declare-mismatch"

MIN_TEXT_BYTES = 100
"""Bytes: "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is
'true'" has 112; a longer name makes it longer."""

_ARGUMENTS = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-delivery-limit",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-message-ttl",
    "x-overflow",
    "x-queue-mode",
    "x-queue-type",
    "x-single-active-consumer",
)
"""Arguments whose difference the broker refuses."""
_NONE = len("none")
_VALUE = len("the value '' of type ''")
_TYPES = tuple(map(len, ("bool", "long", "longstr", "signedint")))
_LONGEST = 20
"""Characters of a value: a number of 64 bits."""
_REFUSED_FOR = 60.0
"""Seconds from which on it is a warning if a queue waits for its consumer: a deployment would have put it back."""


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every loop in which a queue is declared each time and the broker closes the channel with an error."""
    loops = [each for each in churn_loops(view) if not each.whole and each.lasts >= view.thresholds.early]
    refused = [each for each in loops if each.error is not None and each.error >= MIN_TEXT_BYTES]
    refused = [each for each in refused if not (locked_queues(view, each) or refused_by_limit(view, each))]
    for closing in refused:
        waiting = _waiting(view, closing)
        if closing.alone and closing.declares >= MIN_PER_CYCLE:
            yield _finding(view, closing, waiting if len(waiting) == 1 else ())
        elif not closing.alone and len(waiting) == 1 and _all_declare(view, refused):
            yield _finding(view, closing, waiting)


def _all_declare(view: View, refused: Sequence[ChurnLoop]) -> bool:
    """Return whether the cluster counts a declaration in each cycle of all these loops."""
    cycles = cluster_cycles(view)
    declares = min(each.declares for each in refused) * cycles.rate if cycles is not None else 0.0
    return declares >= MIN_PER_CYCLE * sum(each.rate for each in refused)


def _waiting(view: View, closing: ChurnLoop) -> tuple[Queue, ...]:
    """Return the queues without a consumer about which the broker would send an error as long as this one."""
    vhost = closing.connection.vhost or "/"
    return tuple(
        queue
        for queue in view.queues
        if queue.vhost == vhost
        and queue.consumers == 0
        and (queue.messages_ready or was_consumed(queue))
        and _is_about(queue, closing.error or 0)
    )


def _is_about(queue: Queue, error: int) -> bool:
    """Return whether an error of this length may say that one argument of a queue differs, or is missing."""
    for name in _ARGUMENTS:
        text = f"PRECONDITION_FAILED - inequivalent arg '{name}' for queue '{queue.name}' in vhost '{queue.vhost}': "
        rest = error - text_bytes(f"{text}received  but current is ")
        present = queue.arguments.get(name)
        known = {_NONE} if present is None else {_VALUE + len(str(present)) + kind for kind in _TYPES}
        for length in known:
            other = rest - length
            is_value = any(0 < other - _VALUE - kind <= _LONGEST for kind in _TYPES)
            if is_value or (present is not None and other == _NONE):
                return True
    return False


def _finding(view: View, closing: ChurnLoop, waiting: Sequence[Queue]) -> Finding:
    limit = min(_REFUSED_FOR, view.thresholds.clients.refused_for) if waiting else view.thresholds.clients.refused_for
    severity = Severity.WARNING if closing.lasts >= limit else Severity.INFO
    involved = loop_involved(closing)
    return Finding(
        rule=NAME,
        severity=severity,
        subject=closing.subject,
        since=closing.since.iso(),
        facts={
            **loop_facts(closing),
            "waiting": waiting[0].name if waiting else None,
            "ready": waiting[0].messages_ready if waiting else None,
            "error_bytes": closing.error,
            "warning_after_seconds": limit,
        },
        certainty=certainty(severity, closing.lasts, limit),
        seen_seconds=closing.lasts,
        evidence=tuple(loop_evidence(closing, "channel")),
        involved=replace(involved, queues=tuple(QueueRef(each.vhost, each.name) for each in waiting)),
    )


def _waits(_view: View, finding: Finding) -> Iterable[Hashable]:
    queue = finding.facts["waiting"]
    return () if queue is None else ((finding.facts["vhost"], queue, finding.facts["error_bytes"]),)


SAME_DECLARATION = both(_waits)
"""Several clients are refused the same queue: the instances of one application."""
