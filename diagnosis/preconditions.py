"""Checks what a rule lacks: families never read or too old, disabled counters, queues that the API does not show."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ackscope.findings import Fact, Inconclusive
from ackscope.second_source import SettingsUnknown
from ackscope.snapshot import Queue
from diagnosis.churn import hidden_queues
from diagnosis.contract import Rule, RuleResult, View
from diagnosis.facts import queue_names
from diagnosis.memo import per_view
from diagnosis.series import span

T = TypeVar("T")

QUEUE_COUNTERS_SINCE = (4, 0)
"""The first version whose Prometheus endpoint counts messages by queue, and not only by channel."""

CLIENT_LISTS = frozenset({"connections", "channels", "consumers", "sessions"})
"""Families that a broker without statistics does not tell."""

WHOLE_RULE = frozenset({
    "not_read", "read_once", "no_counters", "no_queue_counters", "no_client_lists", "only_metrics",
    "metrics_incomplete",
})  # fmt: skip
"""Reasons for which a rule judges nothing at all, so they name no object."""

_IN_PART = frozenset({"health", "exchanges"})
"""For these families the Prometheus endpoints have a part only: alarms without health checks, counters of exchanges."""

NEW_SECONDS = 15.0
"""A new queue has neither state nor counts for up to 12 s (its own tick and the statistics interval)."""


def missing(rule: Rule, view: View) -> Iterator[Inconclusive]:
    """Yield why a rule cannot run; nothing if it can."""
    lacking = list(unread(rule.name, view, rule.needs))
    if lacking:
        yield from lacking
        return
    if rule.needs_management and view.reads_only_metrics:
        yield only_metrics(rule.name)
        return
    if not rule.compares_counters:
        return
    overview, metrics = view.overview, view.metrics
    if metrics is not None and "queues" in metrics.families:
        if view.version is not None and view.version < QUEUE_COUNTERS_SINCE:
            yield Inconclusive(rule=rule.name, reason="no_queue_counters")
        elif metrics.unread:
            yield Inconclusive(rule=rule.name, reason="metrics_incomplete", facts={"unread": dict(metrics.unread)})
        elif len(view.window.readings("queues")) < 2:
            yield Inconclusive(rule=rule.name, reason="read_once")
    elif overview is not None and (overview.statistics is False or overview.rates_mode == "none"):
        yield Inconclusive(rule=rule.name, reason="no_counters")
    elif len(view.window.readings("queues")) < 2:
        yield Inconclusive(rule=rule.name, reason="read_once")


def unread(rule: str, view: View, families: Iterable[str]) -> Iterator[Inconclusive]:
    """Yield why families were not read, or not recently; nothing if all were.

    A rule that can judge something without a family does not need it, and yields this itself.
    """
    alone = view.reads_only_metrics
    lacking = [family for family in families if not view.fresh(family) or (alone and family in _IN_PART)]
    if not lacking:
        return
    if _has_only_metrics(view, lacking):
        yield only_metrics(rule)
    elif view.overview is not None and view.overview.statistics is False and CLIENT_LISTS.issuperset(lacking):
        yield Inconclusive(rule=rule, reason="no_client_lists")
    else:
        yield _not_read(rule, view, lacking)


def _hidden(view: View) -> int:
    return hidden_queues(view, view.window.snapshots[-2:])


def blind_spots(rule: Rule, view: View) -> Iterator[Inconclusive]:
    """Yield the queues that a rule cannot see although it runs."""
    if "queues" not in rule.needs:
        return
    hidden = per_view(view, _hidden)
    if hidden:
        yield Inconclusive(rule=rule.name, reason="hidden_queues", facts={"queues": hidden})
    if view.unread:
        facts = {"queues": len(view.unread), "max_age_seconds": view.thresholds.data_age}
        yield Inconclusive(rule=rule.name, reason="stale_details", facts=facts)
    silent = per_view(view, _all_silent)
    if silent:
        yield Inconclusive(rule=rule.name, reason="silent_queues", facts={"queues": len(silent), "names": silent})
    if "consumers" in rule.needs:
        yield from unlisted_consumers(rule.name, view)


def unlisted_consumers(rule: str, view: View) -> Iterator[Inconclusive]:
    """Yield the queues whose consumers do not follow from what channels count, where the broker lists no clients."""
    unlisted = per_view(view, _unlisted) if view.lists_no_clients else []
    if unlisted:
        yield Inconclusive(rule=rule, reason="unlisted_consumers", facts={"queues": len(unlisted), "names": unlisted})


def _unlisted(view: View) -> list[Fact]:
    return queue_names(queue for queue in view.queues if queue.consumers and not view.links(queue))


def _all_silent(view: View) -> list[Fact]:
    """Return the names of queues without counts; cached per view, because every rule asks for them."""
    return queue_names(queue for queue in view.queues if _silent(view, queue))


def _silent(view: View, queue: Queue) -> bool:
    """Return whether the broker reports no counts for a queue that is not just new."""
    if queue.messages_ready is not None and queue.consumers is not None:
        return False
    if span(view.history(queue)) >= NEW_SECONDS:
        return True
    # A queue that was not in the first reading is new, even if it has a state already.
    return queue.state is not None and view.listed_since(queue) == view.window.readings("queues")[0].at


def only_metrics(rule: str) -> Inconclusive:
    """Return the reason of a rule that needs what the Prometheus endpoints lack, such as a setting of a queue."""
    # The same words for every rule, so that it is shown once.
    return Inconclusive(rule=rule, reason="only_metrics")


def each_known(
    rule: str, queues: Iterable[Queue], judge: Callable[[Queue], Iterable[RuleResult]]
) -> Iterator[RuleResult]:
    """Judge each queue by itself; the rule cannot tell about those that need a setting which is unknown."""
    unknown = False
    for queue in queues:
        try:
            yield from judge(queue)
        except SettingsUnknown:
            unknown = True
    if unknown:
        yield only_metrics(rule)


def if_known(value: Callable[[], T], otherwise: T) -> T:
    """Return a value, or another one where the value depends on a setting that is unknown."""
    try:
        return value()
    except SettingsUnknown:
        return otherwise


def _has_only_metrics(view: View, unread: list[str]) -> bool:
    """Return whether the Prometheus endpoints are the only source, answer, and do not tell these families."""
    metrics = view.metrics
    return metrics is not None and metrics.alone and _IN_PART.issuperset(set(unread) & set(metrics.families))


def _not_read(rule: str, view: View, families: list[str]) -> Inconclusive:
    latest = view.window.latest
    endpoints = [
        {
            "name": family,
            "age_seconds": view.age(family),
            "error": latest.parts[family].error if latest else None,
        }
        for family in families
    ]
    return Inconclusive(rule=rule, reason="not_read", facts={"endpoints": endpoints})
