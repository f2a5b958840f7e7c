"""queue-leak (C09): queues come to stay, more and more of them; or so many exist that they cost by themselves.

The number of all queues, which the overview tells, is what is judged; names are only read to say whose they are.
Source: https://www.rabbitmq.com/docs/quorum-queues#atom-use
"""

from collections.abc import Iterator
from itertools import pairwise

from ackscope.findings import Severity, Subject
from ackscope.reports import EvidenceReport, FindingReport, runbook
from ackscope.snapshot import Overview
from diagnosis.contract import RuleResult, View
from diagnosis.rules.queues.telling import is_private
from diagnosis.series import span, steps
from diagnosis.window import Series
from diagnosis.words import amount, lasting, some

NAME = "queue-leak"


def evaluate(view: View) -> Iterator[RuleResult]:
    """Judge how many queues there are, and how that number moved."""
    limits = view.thresholds.queues
    quick = _rising(view.window.readings("overview"), view.thresholds.interval)
    slow = view.trend("overview")
    most = max(limits.leak_least, limits.leak_rate * span(quick))
    if quick and span(quick) >= limits.leak_seen and _gained(quick) >= most:
        severity = Severity.WARNING if span(quick) >= limits.overload_for else Severity.INFO
        yield _leak(view, quick, severity)
    elif span(slow) >= limits.leak_for and _never_fell(slow) and _gained(slow) > limits.leak_slow * span(slow) / 60:
        yield _leak(view, slow, Severity.WARNING)
    elif (_number(view.overview) or 0) > limits.leak_many:
        yield _many(view, _number(view.overview) or 0)


def _number(overview: Overview | None) -> int | None:
    return overview.queues if overview is not None else None


def _rising(readings: Series[Overview], interval: float) -> Series[Overview]:
    """The time until now in which the number of queues rose in each interval, over two of them at least."""
    start, rises = None, 0
    for older, newer in reversed(steps(readings, interval)):
        before, after = older.value.queues, newer.value.queues
        if before is None or after is None or after <= before:
            break
        start, rises = older.at, rises + 1
    if start is None or (rises < 2 and len(readings) > 2):
        return ()
    return tuple(seen for seen in readings if seen.at.mono >= start.mono)


def _gained(readings: Series[Overview]) -> int:
    return (readings[-1].value.queues or 0) - (readings[0].value.queues or 0)


def _never_fell(readings: Series[Overview]) -> bool:
    numbers = [seen.value.queues for seen in readings]
    return all(a is not None and b is not None and a <= b for a, b in pairwise(numbers))


def _leak(view: View, readings: Series[Overview], severity: Severity) -> FindingReport:
    seconds, gained = span(readings), _gained(readings)
    total = readings[-1].value.queues or 0
    whose, newest = _whose(view)
    later = "" if severity is Severity.WARNING else "; a deployment looks the same, a warning comes when it lasts"
    return FindingReport(
        rule=NAME,
        severity=severity,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=readings[0].at.iso(),
        summary=(
            f"{amount(gained, 'queue')} more in {lasting(seconds)} ({gained / seconds * 60:.0f} a minute), "
            f"{total} in all: somebody declares queues and does not delete them{later}"
        ),
        cause=whose,
        evidence=(
            EvidenceReport(
                what="queues",
                value=f"{readings[0].value.queues} to {total} in {lasting(seconds)}",
                expected="stays about the same",
                source="/api/overview object_totals.queues",
            ),
            *(
                [
                    EvidenceReport(
                        what="among the new ones", value=newest, source="/api/queues, this reading and the one before"
                    )
                ]
                if newest
                else []
            ),
        ),
        next_steps=_steps(),
        runbook=runbook(NAME),
    )


def _whose(view: View) -> tuple[str, str]:
    """In words what the new queues have in common, and a few of them."""
    seen = view.window.readings("queues")
    if len(seen) < 2:
        return "Which queues are new is not known yet.", ""
    # The one before the last is whole; older ones may have let go of queues that change all the time.
    before = {queue.key for queue in seen[-2].value}
    new = [queue for queue in view.all_queues if queue.key not in before]
    if not new:
        return "The new queues cannot be seen by the user that asks, or came before they were first read.", ""
    vhosts = sorted({queue.vhost for queue in new})
    common = _beginning([queue.name for queue in new])
    private = sum(is_private(queue) for queue in new)
    told = [f"the new ones are in {'vhost' if len(vhosts) == 1 else 'vhosts'} {some(repr(name) for name in vhosts)}"]
    if len(common) > 2 and len(new) > 1:
        told.append(f"their names begin with {common!r}")
    if private:
        told.append(f"{private} of {len(new)} end with their client")
    elif not any(queue.setting("expires") for queue in new):
        told.append("none of them expires")
    sentence = "; ".join(told)
    return sentence[0].upper() + sentence[1:] + ".", some(sorted(repr(queue.name) for queue in new))


def _beginning(names: list[str]) -> str:
    """What all names begin with: what the first and the last of them in order have in common."""
    first, final = min(names), max(names)
    same = next((place for place, pair in enumerate(zip(first, final, strict=False)) if pair[0] != pair[1]), len(first))
    return first[:same]


def _many(view: View, total: int) -> FindingReport:
    return FindingReport(
        rule=NAME,
        severity=Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=None,
        summary=f"{total} queues: starting nodes, listing and statistics take long, and each costs memory",
        cause="Every queue is a process (a quorum queue one on each of its nodes), and every poll lists them all.",
        evidence=(
            EvidenceReport(
                what="queues",
                value=f"{total}",
                expected=f"below {view.thresholds.queues.leak_many}",
                source="/api/overview object_totals.queues",
            ),
        ),
        next_steps=_steps(),
        runbook=runbook(NAME),
    )


def _steps() -> tuple[str, ...]:
    policy = "rabbitmqctl set_policy -p VHOST expire '^PREFIX' '{\"expires\":3600000}' --apply-to queues"
    return (
        "see which are unused: rabbitmqctl list_queues -p VHOST name consumers messages durable arguments | sort",
        f"have unused ones expire (an hour without consumer, get or declare; their messages go with them): {policy}",
        "bound the number in a virtual host: rabbitmqctl set_vhost_limits -p VHOST '{\"max-queues\":5000}'",
        "mend the client: exclusive or auto-delete queues for answers, fixed names for work",
    )
