"""The summary of the demo, as a JSON document and as text."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ackscope import manifest, tables
from ackscope.findings import Severity
from ackscope.reports import is_over


@dataclass(slots=True)
class Watched:
    """All findings of a run of the demo, by rule and subject, in the order of appearance."""

    findings: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    _present: set[tuple[str, str, str]] = field(default_factory=set)
    _gone: set[tuple[str, str, str]] = field(default_factory=set)

    def see(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """Add a response of `/api/v1/findings`. Returns the findings that are new, back or more severe."""
        new = []
        for cluster in document.get("clusters", []):
            for finding in cluster["findings"]:
                key = _key(finding)
                before = self.findings.get(key)
                is_back = key in self._gone and not is_over(finding)
                if before is None or is_back or _urgency(finding) < _urgency(before):
                    new.append(finding)
                    self._gone.discard(key)
                self.findings[key] = finding
        return new

    def ended(self, document: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the findings of earlier responses that this one does not have, or has as a loss that is over."""
        if not document.get("clusters"):
            return []
        found = [each for cluster in document["clusters"] for each in _flat(cluster["findings"])]
        present = {_key(each) for each in found if not is_over(each)}
        gone, self._present = self._present - present, present
        self._gone |= gone
        return [self.findings[key] for key in sorted(gone) if key in self.findings]


def _urgency(finding: dict[str, Any]) -> int:
    return Severity(finding["severity"]).urgency


def _flat(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return findings with their consequences."""
    return [it for each in findings for it in (each, *_flat(each.get("consequences", ())))]


def _key(finding: dict[str, Any]) -> tuple[str, str, str]:
    subject = finding["subject"]
    return finding["rule"], subject["vhost"] or "", subject["name"]


def rows(root: Path, names: dict[str, tables.Table]) -> int:
    """Return the number of rows in all landing tables under `root`."""
    return sum(_dataset(root, table).count_rows() for table in names.values())


def rolled(root: Path, names: Iterable[str]) -> int:
    """Return the number of rows in these rollup tables, from the manifests under `root`."""
    manifests = [manifest.read(root, cluster) for cluster in manifest.clusters(root)]
    return sum(it.rows for known in manifests for name in names for it in known.files_for(name))


def _dataset(root: Path, table: tables.Table) -> ds.Dataset:
    files = sorted(str(path) for path in (root / table.name).glob("cluster=*/date=*/[!._]*.parquet"))
    return ds.dataset(files, format="parquet")


def _quantile(column: pa.ChunkedArray, q: float) -> float | None:
    value: float | None = pc.quantile(column, q=q)[0].as_py()
    return value


def confirm_figures(landing: Path) -> tuple[dict[str, dict[str, Any]], float | None]:
    """Return the exact confirm latency by queue type over the whole run, and the p99 send delay of the probe.

    Returns:
        `{queue_type: {"p50", "p99", "count"}}` in seconds, and seconds (None before the first message).
    """
    dataset = _dataset(landing, tables.PROBE_MESSAGES)
    if dataset.count_rows() == 0:
        return {}, None
    frame = dataset.to_table(columns=["probe", "stream", "queue_type", "confirm", "send_delay"])
    # Streams named after their queue type publish like applications; the others are for comparison.
    mine = pc.and_(pc.equal(frame["probe"], "confirm"), pc.equal(frame["stream"], frame["queue_type"]))
    confirms = frame.filter(mine)
    figures = {}
    for queue_type in sorted(pc.unique(confirms["queue_type"]).to_pylist()):
        settled = confirms.filter(pc.equal(confirms["queue_type"], queue_type))["confirm"].drop_null()
        figures[queue_type] = {
            "p50": _quantile(settled, 0.5),
            "p99": _quantile(settled, 0.99),
            "count": len(settled),
        }
    return figures, _quantile(confirms["send_delay"], 0.99)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.2f} ms"


def _yes(answered: bool) -> str:  # noqa: FBT001  a formatter of one value
    return "answered" if answered else "NO RESPONSE"


def text(summary: dict[str, Any]) -> str:
    """Format the summary in 80 columns."""
    lines = [f"RabbitMQ {summary['broker']}, monitored for {summary['seconds']:.0f} s", "confirm latency:"]
    lines += [
        f"  {name:<8} p50 {_ms(item['p50']):>10}   p99 {_ms(item['p99']):>10}   {item['count']} messages"
        for name, item in summary["confirm"].items()
    ]
    lines.append(f"  send delay of the probe: p99 {_ms(summary['send_delay_p99'])}")
    lines.append(f"redeliveries seen by the broker: {summary['redeliveries']}")
    lines.append(f"findings: {len(summary['findings']) or 'none'}")
    for finding in summary["findings"]:
        subject = finding["subject"]
        lines.append(f"  {finding['severity']:<8} {finding['rule']:<20} {subject['kind']} {subject['name']}")
    lines.append(f"landing rows: {summary['landing_rows']}   rollup rows: {summary['rollup_rows']}")
    p99 = ", ".join(f"{name} {_ms(value)}" for name, value in summary["prometheus_confirm_p99"].items())
    lines.append(f"Prometheus, confirm p99: {p99 or 'NO RESPONSE'}")
    lines.append(f"dashboard: {_yes(summary['dashboard_ok'])}   /metrics: {_yes(summary['metrics_ok'])}")
    return "\n".join(lines)


def complete(summary: dict[str, Any]) -> bool:
    """Return whether every part of the flow produced data."""
    return bool(
        summary["confirm"]
        and summary["landing_rows"]
        and summary["rollup_rows"]
        and summary["dashboard_ok"]
        and summary["metrics_ok"]
        and summary["prometheus_confirm_p99"]
    )
