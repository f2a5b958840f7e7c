"""Vital signs in words: how much, since when, and whether that is usual. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence

from ackscope.baselines import Band
from ackscope.findings import Finding
from ackscope.measures import quantity
from dashboard.data.model import MetricSeries, SubjectSeries, VitalMetric
from dashboard.format import readable
from diagnosis.usual import made_of, span_of

LABELS = {
    "publish": "Published",
    "confirm": "Confirmed",
    "deliver": "Delivered",
    "ack": "Acked",
    "redeliver": "Redelivered",
    "ready": "Ready",
    "unacked": "Unacked",
    "mem_used": "Memory used",
    "disk_free": "Disk free",
    "run_queue": "Run queue",
    "fd_used": "File descriptors",
    "sockets_used": "Sockets",
    "proc_used": "Erlang processes",
}
MEANINGS = {
    "publish": "messages that publishers sent to exchanges. What is usual is told of what queues took: a message that "
    "is routed to three queues counts three times there, one that no queue takes does not count",
    "confirm": "publishes that the broker confirmed; no history is kept of them, so what is usual is not known",
    "deliver": "messages delivered to consumers, or fetched",
    "ack": "deliveries that consumers acknowledged",
    "redeliver": "messages that were delivered again",
    "ready": "messages that wait for a consumer",
    "unacked": "messages with a consumer that has not acknowledged them",
}
_MEASURES = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Sign -> measure, where they differ in name."""

_NEAR = 0.1
"""Share of the band, or of the value, by which two values differ that are as good as one."""

_QUEUE = {
    "messages": ("ready", "unacked"),
    "messages_ready": ("ready",),
    "messages_unacknowledged": ("unacked",),
    "publish": ("publish",),
    "deliver": ("deliver",),
    "deliver_get": ("deliver",),
    "ack": ("ack",),
    "redeliver": ("redeliver",),
}
_NODE = {name: (name,) for name in ("mem_used", "disk_free", "run_queue", "fd_used", "sockets_used", "proc_used")}
_SHOWS: Mapping[str, Mapping[str, tuple[str, ...]]] = {"/api/queues": _QUEUE, "/api/nodes": _NODE}
"""Path of the API and field in it -> lines that show how it went."""
_KINDS = {"/api/queues": "queue", "/api/nodes": "node"}


def figure(line: MetricSeries) -> str:
    """The latest value with its unit; a dash where it is not known."""
    if line.value is None:
        return readable.ABSENT
    return readable.count(line.value) if line.unit in {"messages", ""} else quantity(line.value, line.unit)


def is_outside(sign: VitalMetric) -> str | None:
    """`above usual` or `below usual`; None where it is within, or where what is usual is not known."""
    usual = sign.usual
    if usual is None:
        return None
    if usual.value > usual.high:
        return "above usual"
    return "below usual" if usual.value < usual.low else None


def is_same(sign: VitalMetric) -> bool:
    """Whether the value that is compared is as good as the one that is shown, so that the band is that of the line."""
    if sign.usual is None or sign.value is None:
        return False
    room = max(_NEAR * (sign.usual.high - sign.usual.low), _NEAR * sign.usual.value)
    return abs(sign.value - sign.usual.value) <= room


def usual(sign: VitalMetric) -> str | None:
    """`usual 120 to 180/s`, with the value that is compared where that is another one; None where it is not known."""
    if sign.usual is None:
        return None
    span = span_of(_band(sign), _MEASURES.get(sign.name, sign.name))
    if is_same(sign):
        return f"usual {span}"
    compared = figure(MetricSeries(name=sign.name, unit=sign.unit, value=sign.usual.value))
    return f"applications {compared}, usual {span}"


def foot(signs: Iterable[VitalMetric]) -> list[str]:
    """What is to be said once below all signs: what the bands are of, and why some are not known."""
    known = list(signs)
    made = {made_of(_band(sign)): None for sign in known if sign.usual}
    said = [f"Usual: {it}, for the queues of applications; the probes' own are left out." for it in made]
    why: dict[str, list[str]] = {}
    for sign in known:
        if sign.because:
            why.setdefault(sign.because, []).append(LABELS[sign.name].lower())
    for because, names in why.items():
        whose = "Usual" if not made and len(why) == 1 else f"Usual of {', '.join(names)}"
        said.append(f"{whose}: {because}.")
    return said


def told(line: MetricSeries) -> str:
    """A line in words, for who cannot see it."""
    values = [value for _, value in line.line if value is not None]
    if len(values) < 2:
        return ""

    def spelt(value: float) -> str:
        return figure(MetricSeries(name=line.name, unit=line.unit, value=value))

    span = readable.span(line.line[0][0])
    return (
        f"{LABELS.get(line.name, line.name)}, last {span}: from {spelt(values[0])} to {spelt(values[-1])}, "
        f"lowest {spelt(min(values))}, highest {spelt(max(values))}"
    )


def lines_of(finding: Finding, subjects: Sequence[SubjectSeries]) -> tuple[MetricSeries, ...]:
    """The lines of what a finding's evidence tells of its subject; none where none of it is held."""
    about = finding.subject
    mine = next((it for it in subjects if (it.kind, it.vhost, it.name) == (about.kind, about.vhost, about.name)), None)
    if mine is None:
        return ()
    wanted: dict[str, None] = {}
    for item in finding.evidence:
        for part in item.source.split(";"):
            path, *fields = re.findall(r"[\w/.]+", part) or [""]
            if _KINDS.get(path) == about.kind:
                names = (field.rpartition(".")[2] for field in fields)
                wanted.update(dict.fromkeys(line for name in names for line in _SHOWS[path].get(name, ())))
    return tuple(line for line in mine.lines if line.name in wanted and told(line))


def _band(sign: VitalMetric) -> Band:
    usual = sign.usual
    if usual is None:
        raise ValueError("there is no band")
    return Band(usual.low, usual.middle, usual.high, usual.scope, usual.values)
