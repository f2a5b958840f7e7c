"""ttl-expiry-loss (C04): messages expire before a consumer gets to them; the queue looks empty and well.

A delay (TTL, dead-letter exchange, no consumer) does so by design. What consumers reject is not counted as expired:
the balance gives away all that was handed out. Expiry by a message's own `expiration` is not known to the broker's API.
"""

from collections.abc import Iterator

from ackscope.findings import Severity
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Queue
from diagnosis.contract import RuleResult, View
from diagnosis.routes import is_delay
from diagnosis.rules.queues.balance import Balance, evidence, losing
from diagnosis.rules.queues.telling import about, is_private, named, set_policy, so_far
from diagnosis.series import span
from diagnosis.window import Series
from diagnosis.words import amount, lasting, list_consumers, place

NAME = "ttl-expiry-loss"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge every queue with a message TTL that messages are published to."""
    for queue in view.queues:
        ttl = queue.setting("message-ttl")
        if not isinstance(ttl, int) or queue.type == "stream" or is_private(queue) or is_delay(queue):
            continue
        if not view.moved(queue, "publish") or _at_its_limit(view, queue):
            continue
        found = losing(view, queue)
        if found is not None:
            yield _finding(view, queue, ttl, *found)


def _at_its_limit(view: View, queue: Queue) -> bool:
    """Whether its length limit may be what makes messages vanish."""
    length = queue.setting("max-length")
    return isinstance(length, int) and (queue.messages_ready or 0) >= view.limits(queue).queues.full_share * length


def _finding(view: View, queue: Queue, ttl: int, lately: Series[Queue], balance: Balance) -> FindingReport:
    seconds, limit = span(lately), view.limits(queue).queues.expiry_for
    severity = Severity.WARNING if queue.consumers and seconds >= limit else Severity.INFO
    exchange = queue.setting("dead-letter-exchange")
    fate = f"they are dead-lettered to {exchange!r}" if isinstance(exchange, str) else "they are gone"
    if queue.consumers:
        told = so_far(severity, seconds, limit, "a burst")
        why = (
            f"Its {amount(queue.consumers, 'consumer')} take {balance.taken / seconds:.1f} messages a second, and "
            f"{balance.published / seconds:.1f} are published: the rest waits longer than {_lifetime(ttl)}."
        )
    else:
        told = f"seen for {lasting(seconds)}; nobody consumes, so it may be a store of what is recent on purpose"
        why = f"Nobody consumes from it, and messages live for {_lifetime(ttl)}."
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=about(queue),
        since=lately[0].at.iso(),
        summary=(
            f"At least {amount(balance.lost, 'message')} of {balance.published} expired in {named(queue)} within "
            f"{lasting(seconds)}, and {fate}; it looks empty meanwhile ({queue.messages_ready or 0} ready); {told}"
        ),
        cause=why,
        evidence=(
            *evidence(balance),
            EvidenceReport(
                what="message TTL",
                value=_lifetime(ttl),
                expected="longer than messages ever wait",
                source="/api/queues arguments, effective_policy_definition",
            ),
            EvidenceReport(what="ready", value=f"{queue.messages_ready or 0}", source="/api/queues messages_ready"),
        ),
        next_steps=_steps(queue, ttl),
        runbook=runbook(NAME),
    )


def _steps(queue: Queue, ttl: int) -> tuple[str, ...]:
    if "x-message-ttl" in queue.arguments:
        longer = "a longer life needs a new queue: the TTL is an argument, and the lower of argument and policy counts"
    else:
        longer = f"to win time: {set_policy(queue, 'longer-ttl', {'message-ttl': ttl * 10})}"
    keep = set_policy(queue, "keep-expired", {"dead-letter-exchange": "EXCHANGE"})
    return (
        f"see who consumes, and scale or mend them: {list_consumers(queue)}",
        longer,
        f"keep what expires: {keep}",
        (
            "see which reasons the broker counts (3.10 on): "
            "curl -s http://HOST:15692/metrics | grep dead_lettered_expired_total"
        ),
        f"look at the queue's settings: rabbitmqctl list_queues -p {place(queue).split()[1]} name arguments policy",
    )


def _lifetime(ttl: int) -> str:
    return f"{ttl} ms" if ttl < 10_000 else lasting(ttl / 1000)
