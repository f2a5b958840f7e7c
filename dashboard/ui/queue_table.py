"""The list of queues as an HTML table, which is drawn at once: a data frame first loads 1.5 MB of scripts. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple
from urllib.parse import urlencode

import pandas as pd

from ackscope import format as fmt
from dashboard.format.escape import html_text
from dashboard.ui.elements import without_empty

KEY = "queue-table"
"""Key of the container that scrolls; the table in it is replaced with each refresh."""

_AT_LEFT = {"text", "picture"}


class _Column(NamedTuple):
    """A column of the table.

    Attributes:
        name: column of the rows.
        width: pixels.
        kind: how a value is shown; numbers are at the right.
        meaning: what the heading does not say.
        sort: key of `queue_rows.SORTS` that its heading sorts by; "" if none.
    """

    name: str
    label: str
    width: int
    kind: Literal["text", "whole", "rate", "share", "picture"] = "text"
    meaning: str = ""
    sort: str = ""


# Up to the redeliveries, all of it fits on a screen of 1,440 pixels.
_COLUMNS = (
    _Column("finding", "Finding", 136, "text", "rules with a finding about the queue", "hurts"),
    _Column("queue", "Queue", 184, sort="name"),
    _Column("vhost", "Vhost", 76),
    _Column("type", "Type", 66),
    _Column("ready", "Ready", 72, "whole", "messages not delivered to a consumer", "ready"),
    _Column("unacked", "Unacked", 84, "whole", "messages delivered to a consumer, not acknowledged yet", "unacked"),
    _Column(
        "backlog_trend",
        "Backlog",
        88,
        "picture",
        "ready and unacked messages in the last 10 min, from zero; blank is a gap",
    ),
    _Column("oldest_text", "Oldest", 106, "text", "age of the oldest message, from the flow of messages", "oldest"),
    _Column(
        "empties_text",
        "Empty in",
        100,
        "text",
        "time until the queue is empty at the present rate; it keeps up if what is in it is acked within 10 s",
    ),
    _Column("consumers", "Consumers", 82, "whole"),
    _Column("published", "In /s", 64, "rate", "messages published per second", "published"),
    _Column("acked", "Acked /s", 68, "rate", "messages acknowledged per second"),
    _Column(
        "acked_trend",
        "Acked",
        88,
        "picture",
        "messages acknowledged per second in the last 10 min, from zero; blank is a gap",
    ),
    _Column("redelivered", "Redelivered /s", 116, "rate", "messages redelivered per second", "redelivered"),
    _Column("growing", "Growing /s", 98, "rate", "recent growth of ready and unacked messages per second", "growing"),
    _Column("share", "Of all messages", 112, "share", "share of all messages of the cluster"),
    _Column("state", "State", 76),
    _Column("seen", "Age, s", 58, "whole", "age of its statistics, seconds"),
)


def queue_table(rows: pd.DataFrame, sort: str, address: Mapping[str, str]) -> str:
    """The table: a heading sorts, and a row is a link to the page of its queue.

    Args:
        rows: columns of `queue_rows`, and the texts and pictures of the page; NaN and None are unknown.
        sort: key of `queue_rows.SORTS` that the rows are sorted by.
        address: query parameters of the page, which links keep.
    """
    names = without_empty([it.name for it in _COLUMNS], rows, "finding")
    columns = [it for it in _COLUMNS if it.name in names]
    width = sum(it.width for it in columns)
    heads = "".join(_head(it, sort, address) for it in columns)
    cells = [_cells(it, rows, address) for it in columns]
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in zip(*cells, strict=True))
    return (
        f'<table aria-label="Queues" style="min-width:{width}px"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )


def _head(column: _Column, sort: str, address: Mapping[str, str]) -> str:
    title = f' title="{html_text(column.meaning)}"' if column.meaning else ""
    order = "ascending" if column.sort == "name" else "descending"
    marked = f' aria-sort="{order}"' if column.sort == sort else ""
    label = html_text(column.label)
    if column.sort:
        label = f'<a href="{_link(address, sort=column.sort)}">{label}</a>'
    kind = ' class="text"' if column.kind in _AT_LEFT else ""
    return f'<th scope="col"{kind} style="width:{column.width}px"{title}{marked}>{label}</th>'


def _cells(column: _Column, rows: pd.DataFrame, address: Mapping[str, str]) -> Iterable[str]:
    if column.name == "queue":
        for queue, vhost, finding in zip(rows["queue"], rows["vhost"], rows["finding"], strict=True):
            title = "&#10;".join(html_text(it) for it in (queue, vhost, finding) if it)
            link = _link(address, queue=queue, vhost=vhost)
            label = html_text(queue if queue.strip() else repr(queue))
            yield f'<th scope="row" class="text"><a href="{link}" title="{title}">{label}</a></th>'
        return
    for value in rows[column.name]:
        yield _cell(column.kind, value)


def _cell(kind: str, value: str | float | None) -> str:
    if pd.isna(value):
        return f'<td class="text">{fmt.ABSENT}</td>' if kind in _AT_LEFT else f"<td>{fmt.ABSENT}</td>"
    if isinstance(value, str):
        shown = f'<img src="{html_text(value)}" alt=""/>' if kind == "picture" else html_text(value)
        return f'<td class="text">{shown}</td>'
    if kind == "share":
        return f'<td style="background-size:{value:.0f}% 3px">{value:.0f} %</td>'
    # `z`: a change that rounds to zero has no sign.
    return f"<td>{value:z,.{1 if kind == 'rate' else 0}f}</td>"


def _link(address: Mapping[str, str], **changed: str) -> str:
    return html_text(f"?{urlencode({**address, **changed})}")
