"""`python -m exporter.docs.migrating > docs/migrating.md`: migration from kbudde/rabbitmq_exporter."""

import sys

from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.compat.not_provided import NOT_PROVIDED
from exporter.exposition.compat.table import OLD_METRICS, OldMetric

HEADER = """\
# Moving from rabbitmq_exporter

[kbudde/rabbitmq_exporter](https://github.com/kbudde/rabbitmq_exporter) was discontinued in 2024, without support for
RabbitMQ 4. Its users can switch in one step and change their dashboards later:

```yaml
metrics:
  names: both
```

| `metrics.names` | metrics of the broker |
|---|---|
| `official` (default) | the names of RabbitMQ's own plugin, and `ackscope_` names where it has none |
| `both` | the same, plus the names of rabbitmq_exporter that do not clash with official ones |
| `rabbitmq_exporter` | the names and labels of rabbitmq_exporter instead of the official ones, and `ackscope_` names |

- A name that both use is one metric. Under `both` it is the official one: without the labels `durable`, `policy` and
  `self`, and with today's meaning if the table notes a difference. Under `rabbitmq_exporter` it is as it was there.
- `cluster` is the cluster's name in the configuration file, as in all metrics.
- `self` is always `lb`, which rabbitmq_exporter used for one exporter that reads a whole cluster through one address.
  Its "1" and "0" said whether an object was on the node that answered. Remove `self="1"` from queries: with one
  exporter per cluster nothing is counted twice.
- rabbitmq_exporter wrote 0 for counters that the broker did not report. Here a counter has no sample before its first
  event; use `or vector(0)` where a query needs one.
- Objects beyond the cardinality limits are summed up in a remainder such as `queue="(other)"`, so that sums stay right;
  MAX_QUEUES of rabbitmq_exporter dropped all of them. Limits and patterns are in [configuration.md](configuration.md).
- Settings that were environment variables: RABBIT_URL is `clusters.NAME.management.url`; RABBIT_USER, RABBIT_PASSWORD
  and RABBIT_PASSWORD_FILE are `username`, `password` and `password_file` next to it, RABBIT_TIMEOUT is `timeout`;
  PUBLISH_ADDR and PUBLISH_PORT are `listen`.

This page is generated from the table in the code that declares the metrics:
`.venv/bin/python -m exporter.docs.migrating > docs/migrating.md`.
"""


def page() -> str:
    """The whole page."""
    official = {spec.name: spec.labels for collector in COLLECTORS.values() for spec in collector.specs}
    lines = ["| name in rabbitmq_exporter | labels | today's name | note |", "|---|---|---|---|"]
    lines += [_row(old, official) for old in sorted(OLD_METRICS, key=lambda old: old.spec.name)]
    removed = ["| name in rabbitmq_exporter | why | instead |", "|---|---|---|"]
    removed += [
        f"| `rabbitmq_{left.name}` | {left.why} | {_code(left.instead)} |"
        for left in sorted(NOT_PROVIDED, key=lambda left: left.name)
    ]
    return "\n\n".join(
        (
            HEADER.rstrip(),
            "## Names\n\n" + "\n".join(lines),
            "## Not provided\n\nThese could not be correct under any name." + "\n\n" + "\n".join(removed) + "\n",
        )
    )


def _row(old: OldMetric, official: dict[str, tuple[str, ...]]) -> str:
    spec = old.spec
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    today = "the same" if old.instead == spec.name else _code(old.instead) or "none"
    notes = [old.note] if old.note else []
    if old.instead == spec.name and official[spec.name] != spec.labels:
        missing = [label for label in spec.labels if label not in official[spec.name]]
        notes.append(f"today without {', '.join(f'`{label}`' for label in missing)}")
    elif old.instead != spec.name and spec.name in official:
        notes.append("today the name is another metric: under `both` it has today's meaning")
    return f"| `{spec.name}` | {labels} | {today} | {'; '.join(notes)} |"


def _code(text: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in text.split(", ")) if text else ""


if __name__ == "__main__":
    sys.stdout.write(page())
