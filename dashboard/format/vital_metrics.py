"""Vital metrics as text: the value, its baseline band, and the recent trend. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from ackscope import format as fmt
from ackscope.measures import band_basis, band_range, measure, quantity
from ackscope.reports import FindingReport
from dashboard.data.model import MetricSeries, SubjectSeries, VitalMetric
from dashboard.format import readable

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
    "publish": "messages published to exchanges. The band counts messages that queues received: a message that is "
    "routed to three queues counts three times, an unroutable one does not count",
    "confirm": "publishes that the broker confirmed; they have no history, so there is no band",
    "deliver": "messages delivered to consumers, or fetched",
    "ack": "deliveries that consumers acknowledged",
    "redeliver": "messages delivered more than once",
    "ready": "messages in queues, not delivered to a consumer",
    "unacked": "messages delivered to a consumer, not acknowledged yet",
}
_MEASURES = {"publish": "published", "deliver": "delivered", "ack": "acked", "redeliver": "redelivered"}
"""Metric -> measure of the baselines, where the names differ."""

# Two values count as equal if they differ by less than this share of the band or of the value.
_TOLERANCE = 0.1

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
"""API path and field of evidence -> metrics whose recent values are shown with it."""
_USUAL = {
    "queue": ("ready", "unacked", "ack", "publish"),
    "node": ("mem_used", "disk_free", "fd_used"),
    "cluster": ("publish", "ack", "ready"),
}
"""Kind of subject -> metrics to show if the evidence names none, the clearest evidence first."""
_MOST_LINES = 3
_KINDS = {"/api/queues": "queue", "/api/nodes": "node"}


def value_text(line: MetricSeries) -> str:
    """The latest value with its unit; a dash if it is not known."""
    if line.value is None:
        return fmt.ABSENT
    return readable.count(line.value) if line.unit in {"messages", ""} else quantity(line.value, line.unit)


def deviation(metric: VitalMetric) -> str | None:
    """`above usual` or `below usual`; None inside the band, or without a band."""
    usual = metric.usual
    if usual is None:
        return None
    if usual.value > usual.high:
        return "above usual"
    return "below usual" if usual.value < usual.low else None


def band_fits(metric: VitalMetric) -> bool:
    """Whether the band applies to the sparkline: the value compared with it is about equal to the shown one."""
    if metric.usual is None or metric.value is None:
        return False
    tolerance = max(_TOLERANCE * (metric.usual.high - metric.usual.low), _TOLERANCE * metric.usual.value)
    return abs(metric.value - metric.usual.value) <= tolerance


def band_text(metric: VitalMetric) -> str | None:
    """`usual 120 to 180/s`, with the compared value if it differs from the shown one; None without a band."""
    if metric.usual is None:
        return None
    span = band_range(metric.usual.low, metric.usual.high, measure(_MEASURES.get(metric.name, metric.name)).unit)
    if band_fits(metric):
        return f"usual {span}"
    compared = value_text(MetricSeries(name=metric.name, unit=metric.unit, value=metric.usual.value))
    return f"applications {compared}, usual {span}"


def footnotes(metrics: Iterable[VitalMetric]) -> list[str]:
    """Notes below the metrics: what the bands are computed from, and why some metrics have none."""
    shown = list(metrics)
    bases = {band_basis(metric.usual.scope, metric.usual.values): None for metric in shown if metric.usual}
    notes = [f"Usual: {basis}, over the queues of applications, without the probes' own queues." for basis in bases]
    reasons: dict[str, list[str]] = {}
    for metric in shown:
        if metric.because:
            reasons.setdefault(metric.because, []).append(LABELS[metric.name].lower())
    for because, names in reasons.items():
        whose = "" if not bases and len(reasons) == 1 else f" of {', '.join(names)}"
        notes.append(f"Usual values{whose} {because}.")
    return notes


def trend_text(line: MetricSeries) -> str:
    """The recent values of a series as text, the alternative to its sparkline; "" without two values."""
    values = [value for _, value in line.line if value is not None]
    if len(values) < 2:
        return ""

    def text(value: float) -> str:
        return value_text(MetricSeries(name=line.name, unit=line.unit, value=value))

    span = readable.duration(line.line[0][0])
    return (
        f"{LABELS.get(line.name, line.name)}, last {span}: from {text(values[0])} to {text(values[-1])}, "
        f"lowest {text(min(values))}, highest {text(max(values))}"
    )


def lines_of(finding: FindingReport, subjects: Sequence[SubjectSeries]) -> tuple[MetricSeries, ...]:
    """The known series of the fields that the evidence of a finding names."""
    about = finding.subject
    mine = next((it for it in subjects if (it.kind, it.vhost, it.name) == (about.kind, about.vhost, about.name)), None)
    if mine is None:
        return ()
    wanted = _named_in_evidence(finding)
    return tuple(line for line in mine.lines if line.name in wanted and trend_text(line))


def proof_lines(finding: FindingReport, lines: Sequence[MetricSeries], kind: str) -> tuple[MetricSeries, ...]:
    """Two or three series that prove a finding: those that its evidence names, then the usual ones of this kind.

    Args:
        finding: the finding.
        lines: known series of one subject.
        kind: kind of that subject: queue, node or cluster.
    """
    known = {line.name: line for line in lines if line.name in LABELS and trend_text(line)}
    evidence = [name for name in _named_in_evidence(finding) if name in known]
    others = [name for name in _USUAL.get(kind, ()) if name in known and name not in evidence]
    names = evidence[:_MOST_LINES] or others[: _MOST_LINES - 1]
    if len(names) == 1:
        names += others[:1]
    return tuple(known[name] for name in names)


def _named_in_evidence(finding: FindingReport) -> list[str]:
    wanted: dict[str, None] = {}
    for item in finding.evidence:
        for read in item.fields:
            if _KINDS.get(read.path) == finding.subject.kind:
                wanted.update(dict.fromkeys(_SHOWS[read.path].get(read.field.rpartition(".")[2], ())))
    return list(wanted)
