"""Make docs/comparison.md: `python -m bench.diagnosis.comparison FILE... > docs/comparison.md`.

The files are outputs of `python -m bench.diagnosis.faults --compare --json`.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from bench.tables import median

Row = Mapping[str, Any]

PEERS = {
    "cluster-operator": "cluster-operator",
    "awesome-prometheus-alerts": "awesome-prometheus-alerts",
    "jsonnet-mixin": "grafana/jsonnet-libs",
    "adinhodovic-mixin": "adinhodovic/rabbitmq-mixin",
}

_HEADER = """\
# Published alert rules of others, compared with ackscope

This page compares ackscope as installed (an exporter with its defaults, and its probes) with the published alert rules
of others, which a real Prometheus evaluates on the metrics of RabbitMQ's official plugin. Both observed the same faults
on the same brokers at the same time. The rules of others are rewritten here with their documented thresholds and
meaning (`bench/diagnosis/peer_rules.yml`).

These counting rules favour the others:

- An alert counts as soon as its condition holds. Most alerts wait for minutes before they notify anybody; the column
  *median `for:`* shows how long.
- An alert without a queue in its labels counts for every fault that was present at that time, even if another fault
  raised it.
- A cause counts as named if the name of the alert states it, whether or not the alert identifies the queue, the client
  or the node.
- The stream `unroutable` of ackscope's confirm probe was off. Its messages are returned by design, so alerts on
  unroutable messages would fire all the time.

One counting rule favours ackscope: its first report of a fault counts. In most cases its severity is *info*, which
pages nobody. The warning follows after the time that the runbook states, because a deployment or a burst looks the same
at first. The others page when their `for:` has passed.

The comparison does not include rules that people write for their own queues by name, or what a RabbitMQ expert sees on
a dashboard.
"""


def page(rows: Sequence[Row]) -> str:
    """Return the whole page."""
    tried = [row for row in rows if not row["failed"]]
    named = [row for row in tried if row["seconds"] is not None]
    versions = sorted({f"{row['broker']} ({_nodes(row)})" for row in tried})
    share = f"{len(named)} of {len(tried)}"
    lines = [
        _HEADER,
        f"Brokers: {', '.join(versions)}. {len(tried)} faults, by `python -m bench.diagnosis.faults --compare`.",
        "",
        "| rules of | fault detected | root cause named | median `for:` |",
        "|---|---|---|---|",
        f"| **ackscope** | {share} | {share} | {median([row['seconds'] for row in named]) or 0:.0f} s total |",
    ]
    for key, name in PEERS.items():
        detected = [row for row in tried if key in row["peers"]]
        causes = sum(key in row["named_by"] for row in tried)
        waits = median([row["peers_wait"][key] for row in detected])
        wait = "-" if waits is None else f"{waits / 60:.0f} min"
        lines.append(f"| {name} | {len(detected)} of {len(tried)} | {causes} of {len(tried)} | {wait} |")
    heads = ["fault", "broker", "ackscope", *PEERS.values()]
    lines += ["", "## Fault by fault", "", f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [_line(row) for row in sorted(tried, key=lambda row: (row["fault"], row["broker"]))]
    lines += ["", "**Bold**: the alert names the cause. Alerts that already fired on the healthy broker are omitted:"]
    lines += [
        "*NodeDown* of awesome-prometheus-alerts fires on every cluster of fewer than three nodes.",
        "",
    ]
    return "\n".join(lines)


def _nodes(row: Row) -> str:
    return "one node" if row["nodes"] == 1 else f"{row['nodes']} nodes"


def _line(row: Row) -> str:
    ours = "not named" if row["seconds"] is None else f"**{row['seconds']:.0f} s**, {row['severity']}"
    cells = [f"[{row['fault']}](../diagnosis/catalogue/{row['fault']}.md)", f"{row['broker']}, {_nodes(row)}", ours]
    for key in PEERS:
        names = ", ".join(sorted(set(row["peers"].get(key, ()))))
        cells.append(f"**{names}**" if key in row["named_by"] else names or "-")
    return f"| {' | '.join(cells)} |"


def main(files: Sequence[str]) -> int:
    """Print the page for these result files."""
    rows = [row for file in files for row in orjson.loads(Path(file).read_bytes())["rows"]]
    sys.stdout.write(page(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
