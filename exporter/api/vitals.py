"""The document of `/api/v1/vitals`: throughput and backlog of each cluster with baselines, and sparklines.

Values and sparklines are the broker's own cluster totals. Baselines cover application queues, so totals over those are
compared with them. Pure: made from memory.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ackscope.baselines import Band, Baselines, NoBand, NotYet
from ackscope.clock import Instant
from ackscope.findings import Finding, flat
from diagnosis.text import no_band_text
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.object_series import cluster_series, subject_series
from exporter.api.throughput import ClusterTotal, cluster_throughput
from exporter.runtime.state import ClusterState

Document = dict[str, Any]

_MOST = 8
"""Number of findings whose subjects get sparklines."""
_TRENDS, _TREND_SECONDS = 300, 300.0

_BANDS = {
    "publish": "published",
    "deliver": "delivered",
    "ack": "acked",
    "redeliver": "redelivered",
    "ready": "ready",
    "unacked": "unacked",
}
"""Sign -> measure of the table `baselines`; there is no history of confirms."""


def vitals(
    states: Mapping[str, ClusterState],
    now: Instant,
    usual: Callable[[str], Baselines | None],
    thresholds: Thresholds,
) -> Document:
    """Return throughput and backlog of each cluster.

    Returns:
        `{"now", "clusters": [{"cluster", "age_seconds", "signs", "subjects", "trends"}]}`. A sign is `{"name", "unit",
        "value", "line": [[seconds ago, value]], "usual", "because"}`: `usual` is a baseline band with the `value` to
        compare, or null with the reason in `because`. A subject of a finding has `kind`, `vhost`, `name` and `lines`,
        each like a sign. Rates are per second; "messages" and "bytes" are gauges; null means unknown. A trend is
        `{"vhost", "name", "before", "now", "seconds"}`: messages of a queue with a finding, ready and unacked, at the
        oldest and the newest reading of the last minutes.
    """
    return {
        "now": now.iso(),
        "clusters": [_cluster(name, state, now, usual(name), thresholds) for name, state in states.items()],
    }


def _cluster(
    name: str, state: ClusterState, now: Instant, baselines: Baselines | None, thresholds: Thresholds
) -> Document:
    snapshot = state.snapshot
    findings = state.verdict.findings if state.verdict else ()
    return {
        "cluster": name,
        "age_seconds": snapshot.overview.age(now) if snapshot else None,
        "signs": list(_signs(state.window, now, baselines, thresholds)),
        "subjects": list(_subjects(state.window, now, findings)),
        "trends": list(_trends(state.window, now, findings)),
    }


def _signs(window: Window, now: Instant, baselines: Baselines | None, thresholds: Thresholds) -> Iterator[Document]:
    totals = cluster_series(window, now)
    if not totals:
        return
    bands = {sign: _band(baselines, measure, now, thresholds.usual.oldest) for sign, measure in _BANDS.items()}
    # Sum up the queues only if there is a band to compare with.
    known = any(isinstance(band, Band) for band in bands.values())
    load = cluster_throughput(window, thresholds.own_prefixes) if known else {}
    for line in totals:
        name = line["name"]
        band = bands.get(name)
        yield {**line, **_usual(band, load.get(_BANDS.get(name, ""), ClusterTotal()))}


def _band(baselines: Baselines | None, measure: str, now: Instant, oldest: float) -> Band | NotYet:
    if baselines is None:
        return NotYet(NoBand.NO_HISTORY_READ)
    if baselines.made_at is None:
        return NotYet(NoBand.NO_BANDS)
    return baselines.outdated(now.wall, oldest) or baselines.of("cluster", "", "", measure)


def _usual(band: Band | NotYet | None, load: ClusterTotal) -> Document:
    if not isinstance(band, Band):
        return {"usual": None, "because": no_band_text(band) if band else None}
    if load.value is None:
        return {"usual": None, "because": f"cannot be compared: {load.because}"}
    return {"usual": {**asdict(band), "value": load.value}, "because": None}


def _subjects(window: Window, now: Instant, findings: Sequence[Finding]) -> Iterator[Document]:
    """Yield sparklines of the subjects of the first `_MOST` findings, each subject once."""
    subjects = {(it.subject.kind, it.subject.vhost, it.subject.name): None for it in findings[:_MOST]}
    for kind, vhost, name in subjects:
        lines = subject_series(window, now, kind, vhost, name) if kind != "cluster" else []
        if lines:
            yield {"kind": kind, "vhost": vhost, "name": name, "lines": lines}


def _trends(window: Window, now: Instant, findings: Sequence[Finding]) -> Iterator[Document]:
    """Yield the backlog of the queues of findings now and some minutes ago; each list of queues is read once."""
    subjects = [finding.subject for finding in flat(findings)[:_TRENDS]]
    keys = {(it.vhost, it.name) for it in subjects if it.kind == "queue"}
    lists = [seen for seen in window.readings("queues") if now.since(seen.at) <= _TREND_SECONDS]
    if not keys or len(lists) < 2:
        return
    oldest, newest = lists[0], lists[-1]
    before = {it.key: it.messages for it in oldest.value if it.key in keys}
    for queue in newest.value:
        if queue.key in keys and queue.messages is not None and before.get(queue.key) is not None:
            yield {
                "vhost": queue.vhost,
                "name": queue.name,
                "before": before[queue.key],
                "now": queue.messages,
                "seconds": newest.at.since(oldest.at),
            }
