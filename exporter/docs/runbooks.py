"""Write the table of diagnosis/catalogue/README.md: `python -m exporter.docs.runbooks`."""

import re
import sys

from diagnosis.pages import pages
from exporter.api.runbooks import README

_TABLE = re.compile(r"(?<=\| rule \| title \| impact \|\n\|---\|---\|---\|\n)(\|.*\n)+")


def table() -> str:
    """A line a rule, the worst impact first."""
    ranked = sorted(pages().items(), key=lambda item: (item[1].impact.rank, item[0]))
    return "".join(f"| [{name}]({name}.md) | {page.title} | {page.impact} |\n" for name, page in ranked)


def text() -> str:
    """The page with the table as it should be."""
    return _TABLE.sub(lambda _: table(), README.read_text())


if __name__ == "__main__":
    README.write_text(text())
    sys.stdout.write(f"{README}: {len(pages())} rules\n")
