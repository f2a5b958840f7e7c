"""Visible text of a page that AppTest has run."""

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import pandas as pd
from streamlit.testing.v1 import AppTest


def words(page: AppTest) -> str:
    """All text on the page, one element per line."""
    return "\n".join(_texts(page))


def _texts(page: AppTest) -> Iterator[str]:
    for kind in (
        "header",
        "subheader",
        "markdown",
        "caption",
        "text",
        "code",
        "error",
        "warning",
        "info",
        "expander",
        "button",
    ):
        for element in page.get(kind):
            yield str(getattr(element, "value", None) or getattr(element, "label", ""))
    for metric in page.metric:
        yield f"{metric.label}: {metric.value}"
    for table in page.table:
        yield table.value.to_string()


def html_table(page: AppTest) -> pd.DataFrame:
    """The HTML table of the page, as the text of its cells by heading."""
    (body,) = (it.proto.body for it in page.get("html") if it.proto.body.startswith("<table"))
    table = ET.fromstring(body)
    head, *rows = [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
    return pd.DataFrame(rows, columns=head)


def errors(page: AppTest) -> list[Any]:
    """Exceptions of the page's own code."""
    return [error.value for error in page.exception]
