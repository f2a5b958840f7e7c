"""The measures of `baselines` and `changes` in words: what each is of an object, and its values with their unit."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure.

    Attributes:
        words: what it is, as it stands before a verb: "messages ready".
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
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def measure(name: str) -> Measure:
    """What a measure is; one that is not known here is a plain number of its own name."""
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
    """A value with its unit, in three digits; absent is a dash."""
    if value is None:
        return "\N{EN DASH}"
    if unit == "bytes":
        return _size(value)
    if unit == "seconds":
        return f"{_digits(value)} s" if abs(value) >= 1 else f"{_digits(value * 1000)} ms"
    if unit == "share":
        return f"{_digits(value * 100)} %"
    if unit == "rate":
        return f"{_digits(value)}/s"
    if unit == "messages":
        return f"{value:,.0f} message{'' if round(value) == 1 else 's'}"
    return _digits(value)


def _digits(value: float) -> str:
    """Three digits that mean something: 0.042, 1.5, 12,845."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _size(value: float) -> str:
    for unit in _SIZES[:-1]:
        if abs(value) < 1000:
            return f"{value:.3g} {unit}"
        value /= 1024
    return f"{_digits(value)} {_SIZES[-1]}"
