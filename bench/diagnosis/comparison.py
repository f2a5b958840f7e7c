"""Make docs/comparison.md: `python -m bench.diagnosis.comparison FILE... > docs/comparison.md`.

The files are what `python -m bench.diagnosis.faults --compare --json` printed.
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
# The alert rules that others publish, beside ours

The same faults on the same brokers, at the same time: ackscope as it is installed (an exporter with its defaults,
probes beside), and a real Prometheus that evaluates the published alert rules of others over RabbitMQ's official
plugin. Their rules are written anew, by the thresholds and the meaning that they document
(`bench/diagnosis/peer_rules.yml`).

Counted in their favour:

- An alert counts as soon as its condition holds. Most wait for minutes before they tell anybody; the column *waits*
  says how long.
- An alert without a queue in its labels counts for every fault that was held at that moment, also where another
  fault raised it.
- The cause counts as named where the alert's name says it, whatever the alert can say of the queue, the client or
  the node.
- The stream `unroutable` of our own probe was left out: it is returned on purpose, and would keep their alerts on
  unroutable messages on all the time.

Counted in ours: the first word that ackscope says. That is *info* in most cases, which pages nobody; the warning
comes after as long as the runbook says, for a deployment or a burst looks the same at first. Theirs page when their
waiting time is over.

What it does not show: rules that people write for their own queues by name, and what somebody who knows RabbitMQ
reads off a dashboard.
"""


def page(rows: Sequence[Row]) -> str:
    """The whole page."""
    tried = [row for row in rows if not row["failed"]]
    named = [row for row in tried if row["seconds"] is not None]
    versions = sorted({f"{row['broker']} ({_nodes(row)})" for row in tried})
    share = f"{len(named)} of {len(tried)}"
    lines = [
        _HEADER,
        f"Brokers: {', '.join(versions)}. {len(tried)} faults. `python -m bench.diagnosis.faults --compare` prints it.",
        "",
        "| rules of | told of the fault | cause named | waits, the middle |",
        "|---|---|---|---|",
        f"| **ackscope** | {share} | {share} | {median([row['seconds'] for row in named]) or 0:.0f} s, all in all |",
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
    lines += ["", "**Bold** names the cause. Alerts that held on the healthy broker already are left out:"]
    lines += [
        "*NodeDown* of awesome-prometheus-alerts holds on every cluster of fewer than three nodes: it counts to three.",
        "",
    ]
    return "\n".join(lines)


def _nodes(row: Row) -> str:
    return "one node" if row["nodes"] == 1 else f"{row['nodes']} nodes"


def _line(row: Row) -> str:
    ours = "not named" if row["seconds"] is None else f"**{row['seconds']:.0f} s**, {row['severity']}"
    cells = [f"[{row['fault']}](runbooks/{row['fault']}.md)", f"{row['broker']}, {_nodes(row)}", ours]
    for key in PEERS:
        names = ", ".join(sorted(set(row["peers"].get(key, ()))))
        cells.append(f"**{names}**" if key in row["named_by"] else names or "-")
    return f"| {' | '.join(cells)} |"


def main(files: Sequence[str]) -> int:
    """Print the page of these results."""
    rows = [row for file in files for row in orjson.loads(Path(file).read_bytes())["rows"]]
    sys.stdout.write(page(rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
