"""Handmade bands, and diagnoses with them."""

from ackscope.baselines import HOUR_OF_DAY, HOUR_OF_WEEK, Band, Baselines, NoBand, NotYet, hour_of_week
from ackscope.findings import flat
from tests.unit.diagnosis.pictures import WALL, text

ORDERS = ("queue", "/", "orders")


def band(low, high, *, weeks=6, days=None):
    """Return a band of this many weeks or days."""
    scope, values = (HOUR_OF_WEEK, weeks) if days is None else (HOUR_OF_DAY, days)
    return Band(low=low, middle=(low + high) / 2, high=high, scope=scope, values=values)


def known(bands, *, of=ORDERS, at=WALL, age=3600.0):
    """Return the baselines of one object at a time: a band per measure."""
    named = {(*of, measure): it for measure, it in bands.items()}
    return Baselines(hour_of_week=hour_of_week(at), made_at=at - age, bands=named)


def reported_of(rule, verdict):
    """Return severity, kind and name of each finding of a rule, consequences included."""
    findings = [each for each in flat(verdict.findings) if each.rule == rule]
    return [(each.severity.value, each.subject.kind, each.subject.name) for each in findings]


def one_of(rule, verdict):
    """The only finding of a rule."""
    (finding,) = [each for each in flat(verdict.findings) if each.rule == rule]
    return finding


def aside(rule, verdict):
    """Return why a rule suppressed something."""
    return [text(each).because for each in verdict.suppressed if each.rule == rule]


def usual_line(finding):
    """Return the baseline text of the evidence."""
    return [f"{item.what}: {item.value}" for item in text(finding).evidence if item.what.startswith("usual ")]


__all__ = ["Band", "NoBand", "NotYet", "aside", "band", "known", "one_of", "reported_of", "usual_line"]
