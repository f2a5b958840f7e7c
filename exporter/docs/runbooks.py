"""`python -m exporter.docs.runbooks`: writes the table of rules in diagnosis/catalogue/README.md."""

import re
import sys

from diagnosis.pages import pages
from exporter.api.runbooks import README

_TABLE = re.compile(r"(?<=\| rule \| title \| impact \|\n\|---\|---\|---\|\n)(\|.*\n)+")


def table() -> str:
    """Return one table row per rule, worst impact first."""
    ranked = sorted(pages().items(), key=lambda item: (item[1].impact.rank, item[0]))
    return "".join(f"| [{name}]({name}.md) | {page.title} | {page.impact} |\n" for name, page in ranked)


def text() -> str:
    """Return the page with an up-to-date table."""
    return _TABLE.sub(lambda _: table(), README.read_text())


if __name__ == "__main__":
    README.write_text(text())
    sys.stdout.write(f"{README}: {len(pages())} rules\n")
