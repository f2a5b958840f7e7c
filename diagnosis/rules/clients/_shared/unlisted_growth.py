"""Connections or channels of a whole cluster that become more and more, where the broker lists no clients.

Only totals are known, and more clients look like a leak. So the number must rise at each step until now, above all that
was seen before, and neither consumers nor traffic may grow with it: clients that start, or that a rush hour brings,
consume or publish. A pool that fills, a deployment and clients that come back end within minutes. Devices that only
publish now and then log in over MQTT or STOMP.
"""

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from ackscope.clock import Instant
from ackscope.findings import Certainty, Evidence, Facts, Finding, Severity, Subject, source
from ackscope.snapshot import Overview
from diagnosis.contract import View
from diagnosis.rules.clients._shared.logins import AMQP, accepted_logins
from diagnosis.series import count, grows_at_once, readings_since, readings_until, rising, span, steps
from diagnosis.window import Series

Opened = Literal["connections", "channels"]

_STEPS = (15.0, 60.0)
"""Seconds within which the number must have risen: a fast leak, a slow one. Busy nodes are read every 15 s."""
_SLOWEST = 0.25
"""Share of the mean pace that each step must have."""
_LEAST_SECONDS = 50.0
"""Seconds of growth below which pools fill and clients start."""
_OWN_SECONDS = 120.0
"""Seconds from the first reading within which our own probes connect, one connection for each stream."""
_LEAST_SHARE = 0.2
"""Growth as a share of what was there, below which traffic and consumers cannot be compared with it."""
_CARRIED = 0.5
"""Consumers for each new connection or channel, and growth of the traffic as a share of theirs, that explain them."""
_CHANNELS_EACH = 2
"""Channels that each new connection may have brought."""
_OF_AMQP = 0.8
"""Logins over AMQP for each new connection, below which other clients opened them."""

_WARNS_AFTER, _WARNS_ALWAYS_AFTER = 300.0, 1800.0
"""Seconds of growth after which many are a warning, and after which any number is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalGrowth:
    """Connections or channels that the cluster has gained without a pause.

    Attributes:
        total: all that are open now.
        growth: how many more than ever before; of channels, those that new connections cannot have brought.
        closed: how many were closed meanwhile; None if unknown.
    """

    total: int
    growth: int
    closed: int | None
    seconds: float
    since: Instant

    def warns(self, many: int) -> bool:
        """Return whether it has lasted too long for anything that ends by itself."""
        return self.seconds >= _WARNS_ALWAYS_AFTER or (self.seconds >= _WARNS_AFTER and self.growth >= many)


def total_growth(view: View, what: Opened, least: int) -> TotalGrowth | None:
    """Return the growth of the connections or channels of a cluster that lists no clients; None if it explains itself.

    Args:
        view: the view that is being judged.
        what: which of both.
        least: the smallest growth that counts.
    """
    seen = {each.at: each for each in (*view.trend("overview"), *view.window.readings("overview"))}
    readings: Series[Overview] = tuple(seen[at] for at in sorted(seen, key=lambda each: each.mono))
    for step in _STEPS:
        growing = _rises_evenly(readings, step, what)
        found = _growth(view, readings, growing, what, least) if growing else None
        if found is not None:
            return found
    return None


def total_growth_finding(
    view: View, rule: str, found: TotalGrowth, *, what: Opened, many: int, key: str, facts: Facts
) -> Finding:
    """Return the finding about a growth: information until it has lasted too long.

    Args:
        view: the view that is being judged.
        rule: its name.
        found: the growth.
        what: which of both.
        many: how many more are a warning earlier.
        key: of the evidence with the total.
        facts: of the rule, beside those about the growth.
    """
    warns, counted = found.warns(many), source("/metrics", f"rabbitmq_{what}")
    return Finding(
        rule=rule,
        severity=Severity.WARNING if warns else Severity.INFO,
        subject=Subject(kind="cluster", name=view.window.cluster),
        since=found.since.iso(),
        facts={
            **facts,
            "client": None,
            what: found.total,
            "growth": found.growth,
            "growth_seconds": found.seconds,
            "warning_after_seconds": _WARNS_AFTER,
            "warning_always_seconds": _WARNS_ALWAYS_AFTER,
        },
        evidence=(
            Evidence(key=key, value=found.total, source=counted),
            Evidence(key="gained", value=found.growth, source=counted),
        ),
        certainty=Certainty.LIKELY if warns else Certainty.EARLY,
        seen_seconds=found.seconds,
    )


def _rises_evenly(readings: Series[Overview], step: float, what: Opened) -> Series[Overview]:
    """Return the longest tail in which a number rises with each step, never much slower than on the whole; () without.

    A wave of clients that follows a slow rise is no leak that began with it.
    """
    growing = rising(readings, step, lambda overview: getattr(overview, what))
    pairs = steps(growing, step)
    while pairs:
        paces = [(getattr(new.value, what) - getattr(old.value, what)) / span((old, new)) for old, new in pairs]
        whole = getattr(pairs[-1][1].value, what) - getattr(pairs[0][0].value, what)
        if min(paces) >= _SLOWEST * whole / span((pairs[0][0], pairs[-1][1])):
            return readings_since(growing, pairs[0][0].at.mono)
        pairs = pairs[1:]
    return ()


def _growth(
    view: View, readings: Series[Overview], growing: Series[Overview], what: Opened, least: int
) -> TotalGrowth | None:
    numbers = [getattr(each.value, what) for each in growing]
    if None in numbers or grows_at_once(numbers):
        return None
    # It began after the last reading before the first rise; from the next one on it was under way, until the last rise.
    under_way = [each.at for each, number in zip(growing, numbers, strict=True) if number > numbers[0]]
    last_rise = next(each.at for each, number in zip(growing, numbers, strict=True) if number == max(numbers))
    if last_rise.since(under_way[0]) < _LEAST_SECONDS:
        return None
    earlier = [getattr(each.value, what) or 0 for each in readings_until(readings, growing[0].at.mono)]
    before = max(earlier)
    growth = numbers[-1] - before
    if what == "channels":
        growth -= _CHANNELS_EACH * max(0, _gained(growing, "connections") or 0)
    own = len(view.outcomes) if growing[0].at.since(readings[0].at) < _OWN_SECONDS else 0
    if growth < max(least + own, _LEAST_SHARE * before) or _is_carried(growing, what, numbers):
        return None
    if what == "connections" and _of_other_protocols(view, growing, growth):
        return None
    closed = f"{what.removesuffix('s')}_closed"
    first, last = growing[0].value.churn.get(closed), growing[-1].value.churn.get(closed)
    return TotalGrowth(
        total=numbers[-1],
        growth=growth,
        closed=last - first if first is not None and last is not None and last >= first else None,
        seconds=span(growing),
        since=growing[0].at,
    )


def _is_carried(growing: Series[Overview], what: Opened, numbers: list[int]) -> bool:
    """Return whether consumers or messages became more with the number, as with clients that work."""
    consumers = _gained(growing, "consumers")
    if consumers is not None and consumers >= _CARRIED * (numbers[-1] - numbers[0]):
        return True
    middle = growing[0].at.mono + span(growing) / 2
    early, late = readings_until(growing, middle), readings_since(growing, middle)
    before, after = _traffic(early), _traffic(late)
    if not before or after is None:
        return False
    opened = [fmean(getattr(each.value, what) for each in half) for half in (early, late)]
    return after / before - 1 >= _CARRIED * (opened[1] / max(1.0, opened[0]) - 1)


def _traffic(series: Series[Overview]) -> float | None:
    """Return the messages published and delivered per second; None if there are too few readings."""
    seconds = span(series)
    first, last = (count(each.value.stats, "publish", "deliver_get") for each in (series[0], series[-1]))
    return (last - first) / seconds if seconds and last >= first else None


def _gained(series: Series[Overview], what: str) -> int | None:
    first, last = getattr(series[0].value, what), getattr(series[-1].value, what)
    return None if first is None or last is None else last - first


def _of_other_protocols(view: View, growing: Series[Overview], growth: int) -> bool:
    """Return whether too few clients logged in over AMQP for so many new connections; False if no login is known."""
    logins = accepted_logins(view, growing[0].at)
    if not logins:
        return False
    return sum(logins.get(name, 0.0) for name in AMQP) * span(growing) < _OF_AMQP * growth
