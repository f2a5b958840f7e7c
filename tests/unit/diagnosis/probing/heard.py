"""Outcomes of probes, and diagnoses of them."""

from ackscope.findings import flat
from ackscope.records import ProbeOutcome, ProbeState, ProbeStep, Quantiles
from tests.unit.diagnosis.pictures import WALL, film, look


def took(median, count=60, p99=None, p90=None):
    """Return quantiles of a duration that was measured `count` times."""
    p90 = median if p90 is None else p90
    p99 = p90 if p99 is None else p99
    return Quantiles(count=count, p50=median, p90=p90, p99=p99, max=max(p90, median))


def step(median=0.001, *, failures=0, reason=None, count=60):
    """Return a step with ten successes and these failures, timed `count` times in the last minute."""
    return ProbeStep(attempts=10 + failures, failures=failures, seconds=took(median, count), reason=reason)


def outcome(probe, stream="", **fields):
    """Return the outcome of a healthy stream."""
    usual = {"queue_type": "classic", "vhost": "/", "node": "", "at": WALL, "state": ProbeState.RUNNING}
    stream = stream or probe
    queue = f"ackscope.probe.{probe}.{stream}"
    return ProbeOutcome(probe=probe, stream=stream, **{"queue": queue, "success": True, **usual, **fields})


def heard(*outcomes, parts=None):
    """Return the diagnosis of a healthy broker with these probe outcomes."""
    return look(film(lambda _: parts or {}, until=0), outcomes=outcomes)


def of(rule, verdict):
    """Return severity and subject of the findings of one rule, consequences included."""
    return [(each.severity.value, each.subject.name) for each in flat(verdict.findings) if each.rule == rule]


def one(rule, verdict):
    """Return the only finding of a rule."""
    (finding,) = [each for each in flat(verdict.findings) if each.rule == rule]
    return finding
