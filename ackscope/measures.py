"""The measures of the tables `baselines` and `changes`: their names for people, and their values with the unit."""

from dataclasses import dataclass

from ackscope.baselines import HOUR_OF_WEEK
from ackscope.format import ABSENT, between, duration, number, plural, share, size


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure.

    Attributes:
        words: its name in a sentence: "messages ready".
        unit: messages, rate (messages a second), seconds, share (of 1), bytes, or "" for a plain number.
    """

    words: str
    unit: str


_MEASURES = {
    "ready": Measure("messages ready", "messages"),
    "unacked": Measure("messages unacked", "messages"),
    "unconfirmed": Measure("messages unconfirmed", "messages"),
    "published": Measure("publish rate", "rate"),
    "delivered": Measure("delivery rate", "rate"),
    "acked": Measure("ack rate", "rate"),
    "confirmed": Measure("confirm rate", "rate"),
    "redelivered": Measure("redelivery rate", "rate"),
    "busy": Measure("minutes with publishes", "share"),
    "consumers": Measure("consumers", ""),
    "prefetch": Measure("prefetch", ""),
    "inactive": Measure("time inactive", "share"),
    "at_ceiling": Measure("time at the prefetch ceiling", "share"),
    "failed": Measure("probe messages not acked", "share"),
    "mem_used": Measure("memory used", "bytes"),
    "disk_free": Measure("free disk", "bytes"),
    "mem_alarm": Measure("memory alarm", "share"),
    "disk_alarm": Measure("disk alarm", "share"),
    "down": Measure("time not running", "share"),
    "run_queue": Measure("Erlang run queue", ""),
    "fd_used": Measure("file descriptors", ""),
    "sockets_used": Measure("sockets", ""),
    "proc_used": Measure("Erlang processes", ""),
}
_QUANTILES = {"p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "max": "longest"}


def measure(name: str) -> Measure:
    """A measure by its name; an unknown one is a plain number."""
    known = _MEASURES.get(name)
    if known is not None:
        return known
    what, _, quantile = name.rpartition("_")
    if what and quantile in _QUANTILES:
        return Measure(f"{_QUANTILES[quantile]} {what.replace('_', ' ')} latency", "seconds")
    if what and quantile == "failed":
        return Measure(f"{what.replace('_', ' ')} steps that failed", "share")
    return Measure(name.replace("_", " "), "")


def quantity(value: float | None, unit: str) -> str:
    """A value with its unit (`Measure.unit`), in three digits; a missing value is a dash."""
    texts = {"bytes": size, "seconds": duration, "share": share, "messages": _messages}
    if unit == "rate":
        return ABSENT if value is None else f"{number(value)}/s"
    return texts.get(unit, number)(value)


def band_range(low: float, high: float, unit: str) -> str:
    """The edges of a band with their unit: `2 to 9 ms`, `0.5 ms to 1.5 s`."""
    return between(low, high, lambda value: quantity(value, unit))


def band_basis(scope: str, values: int) -> str:
    """What a band was computed from: `at this hour of the week, from 6 weeks`."""
    span = "week" if scope == HOUR_OF_WEEK else "day"
    return f"at this hour of the {span}, from {plural(values, span)}"


def _messages(value: float | None) -> str:
    return ABSENT if value is None else plural(round(value), "message")
