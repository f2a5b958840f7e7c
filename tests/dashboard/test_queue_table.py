"""The list of queues as an HTML table: what a cell shows, what is marked, and where its links lead."""

import math
from urllib.parse import parse_qs
from xml.etree import ElementTree as ET

import pandas as pd
import pytest

from ackscope.format import ABSENT
from dashboard.format.escape import visible
from dashboard.frames import queue_rows
from dashboard.ui.queue_table import queue_table
from tests.dashboard.answers import HOSTILE

ADDRESS = {"cluster": "shop", "range": "6h", "find": "a&b"}
QUEUE = {
    "finding": "stuck-consumer, slow-consumer",
    "queue": "orders",
    "vhost": "/",
    "type": "quorum",
    "ready": 12_418.0,
    "unacked": 50.0,
    "backlog_trend": "data:image/svg+xml,%3Csvg width='70'%3E%3C/svg%3E",
    "oldest_text": "8 min",
    "empties_text": "does not drain",
    "consumers": 1.0,
    "published": 1_234.56,
    "acked": 0.0,
    "acked_trend": None,
    "redelivered": 0.04,
    "growing": -0.04,
    "share": 93.4,
    "state": "running",
    "seen": 2.4,
}
UNKNOWN = {**dict.fromkeys(QUEUE), "finding": "", "queue": "new", "vhost": "/", "ready": math.nan, "share": math.nan}


def drawn(*rows: dict[str, object], sort: str = "hurts", address: dict[str, str] | None = None) -> ET.Element:
    """The table of these queues."""
    return ET.fromstring(queue_table(pd.DataFrame(rows), sort, ADDRESS if address is None else address))


def texts(table: ET.Element) -> list[list[str]]:
    """The text of all cells, the headings first."""
    return [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]


def column(table: ET.Element, label: str) -> list[ET.Element]:
    """The heading and the cells of a column."""
    place = texts(table)[0].index(label)
    return [row[place] for row in table.iter("tr")]


def target(cell: ET.Element) -> dict[str, list[str]]:
    """The query parameters of the link of a cell."""
    (link,) = cell.iter("a")
    assert link.attrib["href"].startswith("?")
    return parse_qs(link.attrib["href"][1:], strict_parsing=True)


def test_numbers_have_separators_and_a_fixed_number_of_decimals() -> None:
    """A change that rounds to zero has no sign."""
    shown = dict(zip(*texts(drawn(QUEUE)), strict=True))

    assert ("12,418", "50", "1", "2") == tuple(shown[name] for name in ("Ready", "Unacked", "Consumers", "Age, s"))
    rates = ("In /s", "Acked /s", "Redelivered /s", "Growing /s")
    assert ("1,234.6", "0.0", "0.0", "0.0") == tuple(shown[name] for name in rates)
    assert "93 %" == shown["Of all messages"]
    assert ("8 min", "does not drain", "running") == tuple(shown[name] for name in ("Oldest", "Empty in", "State"))


def test_an_unknown_value_is_a_dash() -> None:
    """Never a zero, a bar or a picture."""
    head, _, unknown = texts(table := drawn(QUEUE, UNKNOWN))
    shown = dict(zip(head, unknown, strict=True))

    assert {ABSENT} == {text for name, text in shown.items() if name not in {"Finding", "Queue", "Vhost"}}
    assert "style" not in column(table, "Of all messages")[2].attrib
    assert "background-size:93% 3px" == column(table, "Of all messages")[1].attrib["style"]


def test_sparklines_are_pictures() -> None:
    """Their address stays as it is."""
    (picture,) = drawn(QUEUE).iter("img")

    assert QUEUE["backlog_trend"] == picture.attrib["src"]


def test_a_row_leads_to_its_queue() -> None:
    """With what else stands in the address; the full texts of what may be cut are its title."""
    _, cell = column(drawn({**QUEUE, "queue": "a b&c=d", "vhost": "/é"}), "Queue")

    assert {**{name: [it] for name, it in ADDRESS.items()}, "queue": ["a b&c=d"], "vhost": ["/é"]} == target(cell)
    assert "a b&c=d\n/é\nstuck-consumer, slow-consumer" == next(cell.iter("a")).attrib["title"]


@pytest.mark.parametrize("name", ["", "  "])
def test_a_blank_name_is_a_link_that_can_be_seen(name: str) -> None:
    """As code."""
    _, cell = column(drawn({**QUEUE, "queue": name}), "Queue")

    assert repr(name) == "".join(cell.itertext())


def test_headings_sort() -> None:
    """By all orders of the list, in place of the present one."""
    heads, _ = drawn(QUEUE, address={**ADDRESS, "sort": "name"}).iter("tr")
    orders = [target(head) for head in heads if head.find("a") is not None]

    assert set(queue_rows.SORTS) == {order["sort"][0] for order in orders}
    assert all({"cluster": ["shop"], "range": ["6h"], "find": ["a&b"]}.items() <= order.items() for order in orders)


@pytest.mark.parametrize("sort", queue_rows.SORTS)
def test_the_present_order_is_marked(sort: str) -> None:
    """On one heading: that whose link gives it."""
    (marked,) = (head for head in drawn(QUEUE, sort=sort).iter("th") if "aria-sort" in head.attrib)

    assert [sort] == target(marked)["sort"]
    assert ("ascending" if sort == "name" else "descending") == marked.attrib["aria-sort"]


def test_headings_explain_themselves() -> None:
    """The table has a name, and its cells have headings in both directions."""
    table = drawn(QUEUE)
    titles = {"".join(head.itertext()): head.attrib.get("title", "") for head in table.iter("th")}

    assert "Queues" == table.attrib["aria-label"]
    assert {"col", "row"} == {head.attrib["scope"] for head in table.iter("th")}
    assert "messages not delivered to a consumer" == titles["Ready"]
    assert all(titles[name] for name in ("Finding", "Unacked", "Backlog", "Oldest", "Empty in", "Growing /s", "Age, s"))


def test_hostile_names_are_only_text() -> None:
    """In every cell, link and title."""
    hostile = {**QUEUE, **dict.fromkeys(("finding", "queue", "vhost", "type", "state", "oldest_text"), HOSTILE)}
    said = queue_table(pd.DataFrame([hostile]), "hurts", {"find": HOSTILE, '"><script>': "'"})
    (_, shown) = texts(ET.fromstring(said))

    assert 6 == shown.count(visible(HOSTILE))
    assert {"table", "thead", "tbody", "tr", "th", "td", "a", "img"} == {it.tag for it in ET.fromstring(said).iter()}
    assert not any(text in said for text in ("<script", "<img src=x", "\u202e", 'href="javascript'))


def test_no_queue_leaves_the_headings() -> None:
    """A search without a match."""
    table = ET.fromstring(queue_table(pd.DataFrame([QUEUE]).head(0), "ready", ADDRESS))

    assert ["Queue"] == [text for text in texts(table)[0] if text == "Queue"]
    assert 1 == len(texts(table))
