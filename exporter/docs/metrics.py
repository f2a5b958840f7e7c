"""`python -m exporter.docs.metrics > docs/metrics.md`: the metrics reference."""

import sys
from collections.abc import Sequence

from exporter.docs.untested import untested_reason
from exporter.exposition import execute
from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.compat import detailed
from exporter.exposition.compat.names import MetricNames
from exporter.exposition.compat.select import collectors_for
from exporter.exposition.live import (
    confirming,
    delivery,
    discovery,
    findings,
    history,
    landing,
    otlp,
    outcomes,
    polls,
    process,
    queue_ages,
    reloads,
)
from exporter.exposition.specs import MetricType, Spec
from exporter.probes_host import metric_specs, ondemand_metrics
from probes.catalogue import NOT_ACKED_BY_DESIGN

_REFUSED = " and ".join(f"`{name}`" for name in NOT_ACKED_BY_DESIGN)

HEADER = f"""\
# Metrics

Every metric of the exporter's `/metrics`, followed by those of `/probe`. This page is generated from the declarations
in the code: `.venv/bin/python -m exporter.docs.metrics > docs/metrics.md`.

- Metrics that RabbitMQ's own `rabbitmq_prometheus` plugin has keep their name and type, with a `cluster` label added,
  and a `node` label where the plugin describes the node that answers.
- Missing is not zero: values that the broker does not report, or a version no longer fills, have no sample. A sum with
  a missing part has none either.
- `source` names the RabbitMQ versions that provide a metric, if not all of 3.10 to 4.3 do: fields that a version only
  fills with zeros are not exported there. Verified on 3.10, 4.0 and 4.3; between them, RabbitMQ's source code.
- A line below a table says why a small single-node broker cannot make a metric appear or change. All others are tested
  to appear, and to change if they can, by `tests/integration/exporter/test_metrics_move.py`.
- Metrics from polls show the last successful poll; `ackscope_poll_age_seconds` is its age.
- Counters of a cluster, a virtual host, an exchange or a queue are the broker's sums over its nodes. When one node of
  several restarts, they fall by its share. `rate()` takes that for a restart from zero and shows a spike.
- `node` of a probe metric is the node that the probe was configured to measure, or else the node of its queue or its
  leader. It is empty if unknown, and if the probe also runs node by node and this stream may reach any node.
- `stream` identifies a stream of a probe. Streams of the confirm probe named after a queue type (`classic`, `quorum`,
  `stream`) behave like applications; the others are for comparison, and those of {_REFUSED} are rejected by
  design. `{{probe="confirm",stream=~"classic|quorum|stream"}}` selects the former.
- RabbitMQ's own Grafana dashboards filter by `namespace`, a label that Prometheus must add to the target, and join on
  `rabbitmq_identity_info` by `instance` and `job`. If one exporter monitors several clusters, make each cluster an
  instance, or dashboards of one cluster show the sums of all:

  ```yaml
  metric_relabel_configs:
    - {{source_labels: [cluster], regex: (.+), target_label: instance}}
  ```

  `.venv/bin/python -m bench.exporter.dashboards` shows which of their queries return data, and why the others cannot.
"""


ONE_SHOT = "`/probe`: one on-demand run"
ENDED = "Broker: names of rabbitmq_exporter, with `metrics.names`"
DETAILED = "Broker: names of `/metrics/detailed`, with `metrics.detailed`"


def sections() -> dict[str, tuple[Spec, ...]]:
    """Heading -> metrics, in the order of the page."""
    broker = {f"Broker: {name}": collector.specs for name, collector in COLLECTORS.items()}
    ended = collectors_for(MetricNames.BOTH)["rabbitmq_exporter"].specs
    return {
        "Probes: client experience": metric_specs.SPECS,
        "Probes: latency breakdown of confirms": confirming.SPECS,
        "Probes: status": outcomes.SPECS,
        "Diagnosis": findings.SPECS,
        "Diagnosis: age of queues": queue_ages.SPECS,
        **broker,
        ENDED: ended,
        DETAILED: detailed.SPECS,
        "Exporter: polling": polls.SPECS,
        "Exporter: collectors": execute.SPECS,
        "Exporter: configuration": reloads.SPECS,
        "Exporter: discovery of clusters": discovery.SPECS,
        "Exporter: landing files": landing.SPECS,
        "Exporter: delivery of findings": delivery.SPECS,
        "Exporter: OTLP export": otlp.SPECS,
        "Exporter: history and baselines": history.SPECS,
        "Exporter: build and probe process": process.SPECS,
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
[Moving from rabbitmq_exporter](migrating.md) has the complete list, including names that are the same today."""


def _table(specs: Sequence[Spec]) -> str:
    lines = ["| metric | type | labels | unit | meaning | source |", "|---|---|---|---|---|---|"]
    for spec in sorted(specs, key=lambda spec: spec.name):
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        kind = "untyped" if spec.kind is MetricType.UNTYPED else spec.kind.value
        source = _cell(spec.source + _versions(spec))
        lines.append(f"| `{spec.name}` | {kind} | {labels} | {spec.unit} | {_cell(spec.help)} | {source} |")
    return "\n".join(lines) + "\n"


def _versions(spec: Spec) -> str:
    """RabbitMQ versions that provide it; "" if all do."""
    since = "" if spec.since is None else f"since {'.'.join(map(str, spec.since))}"
    until = "" if spec.until is None else f"before {'.'.join(map(str, spec.until))}"
    words = ", ".join(part for part in (since, until) if part)
    return f" ({words})" if words else ""


def _untested(specs: Sequence[Spec]) -> str:
    lines = [f"- `{spec.name}` is not tested in the lab: {why}." for spec in specs if (why := untested_reason(spec))]
    return "\n" + "\n".join(sorted(lines)) + "\n" if lines else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page())
