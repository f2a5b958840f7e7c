"""The queues as a table: what hurts first. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ackscope.findings import Finding, Severity, flat
from probes.settings import DEFAULT_PREFIX

COLUMNS = (
    "vhost",
    "name",
    "type",
    "state",
    "node",
    "messages_ready",
    "messages_unacked",
    "consumers",
    "lately.publish",
    "lately.deliver_get",
    "lately.ack",
    "lately.redeliver",
    "lately.messages_ready",
    "lately.messages_unacked",
    "details_age",
)
"""Of `/api/v1/columns`, what the table is made of."""

SORTS = {
    "hurts": "What hurts",
    "ready": "Ready",
    "unacked": "Unacked",
    "growing": "Growing",
    "redelivered": "Redelivered",
    "published": "Published",
    "name": "Name",
}
"""Key in the address -> words."""

_NUMBERS = {
    "ready": "messages_ready",
    "unacked": "messages_unacked",
    "consumers": "consumers",
    "published": "lately.publish",
    "delivered": "lately.deliver_get",
    "acked": "lately.ack",
    "redelivered": "lately.redeliver",
    "seen": "details_age",
}


def is_own(queue: str) -> bool:
    """Whether a queue is one of our own probes."""
    return queue.startswith(f"{DEFAULT_PREFIX}.")


def _number(listed: pd.DataFrame, column: str) -> "pd.Series[Any]":
    """One column as numbers, NaN where it is not known."""
    return pd.to_numeric(listed[column], errors="coerce")


def queue_rows(listed: pd.DataFrame, findings: Iterable[Finding]) -> pd.DataFrame:
    """One row a queue: `finding` (words, "" where none), `urgency` (0 critical, 3 none), `vhost`, `queue`, `type`,
    `state`, `ready`, `unacked`, `share` (of all messages, percent), `consumers`, `published`, `delivered`, `acked`,
    `redelivered` (a second), `growing` (messages more, a second), `seen` (age of its statistics, seconds),
    `own` (a queue of our own probes).

    Numbers that are not known are NaN.
    """  # noqa: D205  the columns are the summary
    rows = pd.DataFrame(
        {
            "vhost": listed["vhost"],
            "queue": listed["name"],
            "type": listed["type"],
            "state": listed["state"],
            "node": listed["node"],
            **{name: _number(listed, source) for name, source in _NUMBERS.items()},
        }
    )
    rows["own"] = rows["queue"].map(is_own)
    rows["growing"] = _number(listed, "lately.messages_ready") + _number(listed, "lately.messages_unacked")
    messages = rows["ready"].fillna(0) + rows["unacked"].fillna(0)
    total = messages.sum()
    rows["share"] = 100 * messages / total if total else 0.0
    marks = _marks(findings)
    keys = list(zip(rows["vhost"], rows["queue"], strict=True))
    rows["urgency"] = [marks.get(key, (len(Severity), ""))[0] for key in keys]
    rows["finding"] = [marks.get(key, (0, ""))[1] for key in keys]
    return rows


def _marks(findings: Iterable[Finding]) -> Mapping[tuple[str | None, str], tuple[int, str]]:
    """Queue -> (urgency, rules) of the findings about it, consequences too; the most urgent first."""
    found: dict[tuple[str | None, str], list[Finding]] = {}
    for finding in flat(tuple(findings)):
        if finding.subject.kind == "queue":
            found.setdefault((finding.subject.vhost, finding.subject.name), []).append(finding)
    return {
        key: (
            min(it.severity.urgency for it in mine),
            ", ".join(dict.fromkeys(it.rule for it in sorted(mine, key=lambda it: it.severity.urgency))),
        )
        for key, mine in found.items()
    }


def matching(rows: pd.DataFrame, text: str) -> tuple[pd.DataFrame, str | None]:
    """The rows whose name, virtual host or finding holds `text`; as a regular expression where it is one.

    Returns:
        The rows, and why `text` was taken as plain words although it looks like a pattern; None where it was not.
    """
    if not text:
        return rows, None
    problem = None
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error as error:
        pattern, problem = (
            re.compile(re.escape(text), re.IGNORECASE),
            f"not a regular expression ({error}): taken as words",
        )
    hit = [
        bool(pattern.search(queue) or pattern.search(vhost) or pattern.search(finding))
        for queue, vhost, finding in zip(rows["queue"], rows["vhost"], rows["finding"], strict=True)
    ]
    return rows[hit], problem


def sorted_by(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows in the order of `SORTS`; those of equal rank by name."""
    if key == "name":
        return rows.sort_values(["vhost", "queue"])
    if key == "hurts":
        shaped = rows.assign(
            _depth=rows["ready"].fillna(0) + rows["unacked"].fillna(0), _again=rows["redelivered"].fillna(0)
        )
        order = shaped.sort_values(
            ["urgency", "_again", "_depth", "vhost", "queue"], ascending=[True, False, False, True, True]
        )
        return order.drop(columns=["_depth", "_again"])
    return rows.sort_values([key, "vhost", "queue"], ascending=[False, True, True], na_position="last")
