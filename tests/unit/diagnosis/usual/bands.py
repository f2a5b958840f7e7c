"""Bands made by hand, and verdicts that know them."""

from ackscope.baselines import HOUR_OF_DAY, HOUR_OF_WEEK, Band, Baselines, NoBand, NotYet, hour_of_week
from ackscope.findings import flat
from tests.unit.diagnosis.pictures import WALL, text

ORDERS = ("queue", "/", "orders")


def band(low, high, *, weeks=6, days=None):
    """A band, made of so many weeks, or of so many days."""
    scope, values = (HOUR_OF_WEEK, weeks) if days is None else (HOUR_OF_DAY, days)
    return Band(low=low, middle=(low + high) / 2, high=high, scope=scope, values=values)


def known(bands, *, of=ORDERS, at=WALL, age=3600.0):
    """What is usual at a moment: measure -> band, of one object."""
    named = {(*of, measure): it for measure, it in bands.items()}
    return Baselines(hour_of_week=hour_of_week(at), made_at=at - age, bands=named)


def told_of(rule, verdict):
    """Severity, kind and name of each finding of a rule, wherever it hangs."""
    findings = [each for each in flat(verdict.findings) if each.rule == rule]
    return [(each.severity.value, each.subject.kind, each.subject.name) for each in findings]


def one_of(rule, verdict):
    """The only finding of a rule."""
    (finding,) = [each for each in flat(verdict.findings) if each.rule == rule]
    return finding


def aside(rule, verdict):
    """Why a rule left something alone."""
    return [text(each).because for each in verdict.suppressed if each.rule == rule]


def usual_line(finding):
    """What the evidence says to be usual."""
    return [f"{item.what}: {item.value}" for item in text(finding).evidence if item.what.startswith("usual ")]


__all__ = ["Band", "NoBand", "NotYet", "aside", "band", "known", "one_of", "told_of", "usual_line"]
