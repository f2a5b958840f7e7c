"""`python -m exporter.docs.migrating > docs/migrating.md`: from the ended exporter's names to today's."""

import sys

from exporter.exposition.collectors import COLLECTORS
from exporter.exposition.compat.not_provided import NOT_PROVIDED
from exporter.exposition.compat.table import OLD_METRICS, OldMetric

HEADER = """\
# Moving from rabbitmq_exporter

[kbudde/rabbitmq_exporter](https://github.com/kbudde/rabbitmq_exporter) ended in 2024, without RabbitMQ 4. Its users can
move in one step and change their dashboards later:

```yaml
metrics:
  names: both
```

| `metrics.names` | what `/metrics` has of the broker |
|---|---|
| `official` (default) | the names of RabbitMQ's own plugin, and `ackscope_` where it has none |
| `both` | the same, and of the ended exporter's names those that the official ones leave free |
| `rabbitmq_exporter` | the ended exporter's names in place of the official ones, with its labels; and `ackscope_` |

- A name that both use is one metric only. Under `both` it is the official one: without the labels `durable`, `policy`
  and `self`, and with today's meaning where the table says that it differs. Under `rabbitmq_exporter` it is as it was.
- `cluster` is the name that the cluster has in the configuration file, as everywhere here.
- `self` is always `lb`, the ended exporter's own word for one exporter that looks at a whole cluster through one
  address. Its "1" and "0" told whether an object was on the very node that answered. Take `self="1"` out of queries:
  with one exporter for a cluster nothing is there twice.
- The ended exporter wrote 0 for a counter that the broker did not tell. Here it has no sample before its first event;
  write `or vector(0)` where a query needs one.
- A cluster of more objects than the caps allow has a remainder, such as `queue="(other)"`, so that sums stay right;
  MAX_QUEUES of the ended exporter dropped all of them. Caps and patterns are in [configuration.md](configuration.md).
- Settings that were environment variables: RABBIT_URL is `clusters.NAME.management.url`; RABBIT_USER, RABBIT_PASSWORD
  and RABBIT_PASSWORD_FILE are `username`, `password` and `password_file` beside it, RABBIT_TIMEOUT is `timeout`;
  PUBLISH_ADDR and PUBLISH_PORT are `listen`.

This page is made from the table in the code that makes the metrics:
`.venv/bin/python -m exporter.docs.migrating > docs/migrating.md`.
"""


def page() -> str:
    """The whole page."""
    official = {spec.name: spec.labels for collector in COLLECTORS.values() for spec in collector.specs}
    lines = ["| its name | labels | today's name | note |", "|---|---|---|---|"]
    lines += [_row(old, official) for old in sorted(OLD_METRICS, key=lambda old: old.spec.name)]
    removed = ["| its name | why | instead |", "|---|---|---|"]
    removed += [
        f"| `rabbitmq_{left.name}` | {left.why} | {_code(left.instead)} |"
        for left in sorted(NOT_PROVIDED, key=lambda left: left.name)
    ]
    return "\n\n".join(
        (
            HEADER.rstrip(),
            "## Names\n\n" + "\n".join(lines),
            "## Left out\n\nThese could not be true, whatever the names that are asked for.\n\n"
            + "\n".join(removed)
            + "\n",
        )
    )


def _row(old: OldMetric, official: dict[str, tuple[str, ...]]) -> str:
    spec = old.spec
    labels = ", ".join(f"`{label}`" for label in spec.labels)
    today = "the same" if old.instead == spec.name else _code(old.instead) or "none"
    notes = [old.note] if old.note else []
    if old.instead == spec.name and official[spec.name] != spec.labels:
        missing = [label for label in spec.labels if label not in official[spec.name]]
        notes.append(f"without {', '.join(f'`{label}`' for label in missing)} today")
    elif old.instead != spec.name and spec.name in official:
        notes.append("the name is another metric today: under `both` it has today's meaning")
    return f"| `{spec.name}` | {labels} | {today} | {'; '.join(notes)} |"


def _code(text: str) -> str:
    return ", ".join(f"`{name.strip()}`" for name in text.split(", ")) if text else ""


if __name__ == "__main__":
    sys.stdout.write(page())
