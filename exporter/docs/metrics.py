"""`python -m exporter.docs.metrics > docs/metrics.md`: the reference of every metric."""

import sys
from collections.abc import Sequence

from exporter import execute, one_shot_metrics, probe_families
from exporter.collectors import COLLECTORS
from exporter.live import confirming, landing, outcomes, polls, process, verdicts
from exporter.metrics import Kind, Spec

HEADER = """\
# Metrics

Every metric that `/metrics` of the exporter can show, and at the end those of `/probe`. This page is made from the
declarations in the code:
`.venv/bin/python -m exporter.docs.metrics > docs/metrics.md`.

- A quantity that RabbitMQ's own `rabbitmq_prometheus` plugin names keeps that name and type here, with a `cluster`
  label added, and a `node` label where the plugin answers for the node that is asked.
- Absent is not zero: what a broker does not say, or a version no longer fills, has no sample. A sum of which a part
  is missing has none either.
- What comes from polls is the last good reading; `ackscope_poll_age_seconds` says how old it is.
- `node` of a probe's metric is the node that it was told to measure, else the one that holds its queue or leads it; it
  is empty where that is not known, and where a probe runs node by node and this stream may be led to any of them.
- `stream` tells the streams of a probe apart. Those of the confirm probe named for their queue type (`classic`,
  `quorum`, `stream`) send what applications send; the others are there for comparison, and those of the probe `nack`
  are refused by design: `{probe="confirm",stream=~"classic|quorum|stream"}` leaves them out.
- Where one exporter watches several clusters, dashboards that join on `rabbitmq_identity_info` must join on
  `cluster`, too.
"""


ONE_SHOT = "`/probe`: one run, on demand"


def sections() -> dict[str, tuple[Spec, ...]]:
    """Heading -> metrics, in the order of the page."""
    broker = {f"Broker: {name}": collector.specs for name, collector in COLLECTORS.items()}
    return {
        "Probes: what a client lives through": probe_families.SPECS,
        "Probes: where the time of a confirm goes": confirming.SPECS,
        "Probes: how they do": outcomes.SPECS,
        "Diagnosis": verdicts.SPECS,
        **broker,
        "Exporter: polling": polls.SPECS,
        "Exporter: collectors": execute.SPECS,
        "Exporter: landing files": landing.SPECS,
        "Exporter: itself and its probe process": process.SPECS,
        ONE_SHOT: one_shot_metrics.SPECS,
    }


def page() -> str:
    """The whole page."""
    blocks = [HEADER]
    for heading, specs in sections().items():
        blocks.append(f"## {heading}\n\n{_table(specs)}")
    return "\n".join(blocks)


def _table(specs: Sequence[Spec]) -> str:
    lines = ["| metric | type | labels | unit | what it says | from |", "|---|---|---|---|---|---|"]
    for spec in sorted(specs, key=lambda spec: spec.name):
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        kind = "untyped" if spec.kind is Kind.UNTYPED else spec.kind.value
        lines.append(f"| `{spec.name}` | {kind} | {labels} | {spec.unit} | {_cell(spec.help)} | {_cell(spec.source)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page())
