"""Queues as table rows, and how to sort and filter them. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ackscope.findings import Severity
from ackscope.reports import FindingReport, flat_reports
from dashboard.frames import finding_rows
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
    "head_age_lower",
    "head_age_upper",
    "time_to_empty",
    "age_reasons",
)
"""Columns of `/api/v1/columns` that the table is built from."""

SORTS = {
    "hurts": "Most urgent",
    "ready": "Ready",
    "unacked": "Unacked",
    "oldest": "Oldest message",
    "growing": "Growing",
    "redelivered": "Redelivered",
    "published": "Published",
    "name": "Name",
}
"""`?sort=` -> label."""

_NUMBERS = {
    "ready": "messages_ready",
    "unacked": "messages_unacked",
    "consumers": "consumers",
    "published": "lately.publish",
    "delivered": "lately.deliver_get",
    "acked": "lately.ack",
    "redelivered": "lately.redeliver",
    "seen": "details_age",
    "oldest": "head_age_lower",
    "oldest_at_most": "head_age_upper",
    "empties": "time_to_empty",
}


def is_own(queue: str) -> bool:
    """Whether a queue belongs to ackscope's own probes."""
    return queue.startswith(f"{DEFAULT_PREFIX}.")


def _number(listed: pd.DataFrame, column: str) -> "pd.Series[Any]":
    """One column as numbers, NaN if unknown."""
    return pd.to_numeric(listed[column], errors="coerce")


def queue_rows(listed: pd.DataFrame, findings: Iterable[FindingReport]) -> pd.DataFrame:
    """One row per queue, from columns `COLUMNS`; unknown numbers are NaN.

    Columns: `finding` (rules, "" if none), `urgency` (0 critical, 3 none), `vhost`, `queue`, `type`, `state`, `node`,
    `ready`, `unacked`, `share` (percent of all messages), `consumers`, `published`, `delivered`, `acked`, `redelivered`
    (per second), `growing` (growth of ready and unacked messages, per second), `seen` (age of the statistics, seconds),
    `oldest`, `oldest_at_most` (bounds of the age of the oldest message, seconds), `oldest_reasons` (why the upper
    one is unknown, codes), `empties` (seconds until it is empty), `own` (a queue of ackscope's own probes).
    """
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
    rows["oldest_reasons"] = [" ".join(codes or ()) for codes in listed["age_reasons"]]
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


def _marks(findings: Iterable[FindingReport]) -> Mapping[tuple[str, str], tuple[int, str]]:
    """(urgency, rules) of each queue, from findings that name it and their consequences; the most urgent rule first."""
    found: dict[tuple[str, str], list[FindingReport]] = {}
    for finding in flat_reports(tuple(findings)):
        for queue in finding_rows.queues_of(finding):
            found.setdefault(queue, []).append(finding)
    return {key: finding_rows.marks(mine) for key, mine in found.items()}


def matching(rows: pd.DataFrame, text: str) -> tuple[pd.DataFrame, str | None]:
    """The rows whose name, virtual host or finding matches `text`, a regular expression.

    Returns:
        The rows, and why `text` was matched as plain text; None if it is a valid regular expression.
    """
    if not text:
        return rows, None
    problem = None
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error as error:
        pattern, problem = (
            re.compile(re.escape(text), re.IGNORECASE),
            f"not a regular expression ({error}): matched as plain text",
        )
    hit = [
        bool(pattern.search(queue) or pattern.search(vhost) or pattern.search(finding))
        for queue, vhost, finding in zip(rows["queue"], rows["vhost"], rows["finding"], strict=True)
    ]
    return rows[hit], problem


def sorted_by(rows: pd.DataFrame, key: str) -> pd.DataFrame:
    """The rows sorted by a key of `SORTS`, then by name."""
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
