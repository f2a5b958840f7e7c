"""`python -m exporter.docs.metrics > docs/metrics.md`: the reference of every metric."""

import sys
from collections.abc import Sequence

from exporter.docs.untested import untested_reason
from exporter.exposition import execute
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.compat import detailed
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.live import confirming, findings, history, landing, outcomes, polls, process, reloads
from exporter.exposition.specs import MetricType, Spec
from exporter.probes_host import metric_specs, ondemand_metrics

HEADER = """\
# Metrics

Every metric that `/metrics` of the exporter can show, and at the end those of `/probe`. This page is made from the
declarations in the code:
`.venv/bin/python -m exporter.docs.metrics > docs/metrics.md`.

- A quantity that RabbitMQ's own `rabbitmq_prometheus` plugin names keeps that name and type here, with a `cluster`
  label added, and a `node` label where the plugin answers for the node that is asked.
- Absent is not zero: what a broker does not say, or a version no longer fills, has no sample. A sum of which a part
  is missing has none either.
- `from` says which versions of RabbitMQ tell it, where not all of 3.10 to 4.3 do: fields that a version only fills with
  zeros are not exported there. It was seen on 3.10, 4.0 and 4.3; for those between it follows the sources of RabbitMQ.
- A line under a table says why a small broker of one node cannot make a metric appear or move; all others are seen, and
  those that can are seen to move, by `tests/integration/exporter/test_metrics_move.py`.
- What comes from polls is the last good reading; `ackscope_poll_age_seconds` says how old it is.
- `node` of a probe's metric is the node that it was told to measure, else the one that holds its queue or leads it; it
  is empty where that is not known, and where a probe runs node by node and this stream may be led to any of them.
- `stream` tells the streams of a probe apart. Those of the confirm probe named for their queue type (`classic`,
  `quorum`, `stream`) send what applications send; the others are there for comparison, and those of the probe `nack`
  are refused by design: `{probe="confirm",stream=~"classic|quorum|stream"}` leaves them out.
- RabbitMQ's own Grafana dashboards pick by `namespace`, which Prometheus must put on the target, and join on
  `rabbitmq_identity_info` by `instance` and `job`. Where one exporter watches several clusters, make each of them an
  instance, or the sums of one hold those of all:

  ```yaml
  metric_relabel_configs:
    - {source_labels: [cluster], regex: (.+), target_label: instance}
  ```

  `.venv/bin/python -m bench.exporter.dashboards` shows which of their metrics answer, and why the others cannot.
"""


ONE_SHOT = "`/probe`: one run, on demand"
ENDED = "Broker: names of the ended exporter, where `metrics.names` asks for them"
DETAILED = "Broker: names of `/metrics/detailed`, where `metrics.detailed` asks for them"


def sections() -> dict[str, tuple[Spec, ...]]:
    """Heading -> metrics, in the order of the page."""
    broker = {f"Broker: {name}": collector.specs for name, collector in COLLECTORS.items()}
    ended = collectors_for(MetricNames.BOTH)["rabbitmq_exporter"].specs
    return {
        "Probes: what a client lives through": metric_specs.SPECS,
        "Probes: where the time of a confirm goes": confirming.SPECS,
        "Probes: how they do": outcomes.SPECS,
        "Diagnosis": findings.SPECS,
        **broker,
        ENDED: ended,
        DETAILED: detailed.SPECS,
        "Exporter: polling": polls.SPECS,
        "Exporter: collectors": execute.SPECS,
        "Exporter: configuration": reloads.SPECS,
        "Exporter: landing files": landing.SPECS,
        "Exporter: what is known of the past": history.SPECS,
        "Exporter: itself and its probe process": process.SPECS,
        ONE_SHOT: ondemand_metrics.SPECS,
    }


def page() -> str:
    """The whole page."""
    blocks = [HEADER]
    for heading, specs in sections().items():
        intro = f"{_ENDED_INTRO}\n\n" if heading == ENDED else ""
        blocks.append(f"## {heading}\n\n{intro}{_table(specs)}{_untested(specs)}")
    return "\n".join(blocks)


_ENDED_INTRO = """\
[Moving from rabbitmq_exporter](migrating.md) has the whole list, those included that have the same name today."""


def _table(specs: Sequence[Spec]) -> str:
    lines = ["| metric | type | labels | unit | what it says | from |", "|---|---|---|---|---|---|"]
    for spec in sorted(specs, key=lambda spec: spec.name):
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        kind = "untyped" if spec.kind is MetricType.UNTYPED else spec.kind.value
        source = _cell(spec.source + _versions(spec))
        lines.append(f"| `{spec.name}` | {kind} | {labels} | {spec.unit} | {_cell(spec.help)} | {source} |")
    return "\n".join(lines) + "\n"


def _versions(spec: Spec) -> str:
    """Which versions of RabbitMQ tell it; "" where all do."""
    since = "" if spec.since is None else f"from {'.'.join(map(str, spec.since))} on"
    until = "" if spec.until is None else f"before {'.'.join(map(str, spec.until))}"
    words = ", ".join(part for part in (since, until) if part)
    return f" ({words})" if words else ""


def _untested(specs: Sequence[Spec]) -> str:
    lines = [f"- `{spec.name}` stands still in the lab: {why}." for spec in specs if (why := untested_reason(spec))]
    return "\n" + "\n".join(sorted(lines)) + "\n" if lines else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page())
