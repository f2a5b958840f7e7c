"""Write the table of docs/runbooks/README.md anew: `python -m exporter.docs.runbooks`."""

import re
import sys

from diagnosis.contract import Impact
from diagnosis.rules import RULES
from exporter.api.runbooks import FOLDER

_IMPACTS = {
    Impact.LOSS: "loses them",
    Impact.OUTAGE: "stops them",
    Impact.SLOWDOWN: "slows them",
    Impact.RISK: "puts them at risk",
}
_TABLE = re.compile(r"(?<=\| rule \| in a few words \| what it does to messages \|\n\|---\|---\|---\|\n)(\|.*\n)+")


def table() -> str:
    """A line a rule, the most harmful first."""
    ranked = sorted(RULES, key=lambda rule: (rule.impact, rule.name))
    return "".join(f"| [{rule.name}]({rule.name}.md) | {rule.title} | {_IMPACTS[rule.impact]} |\n" for rule in ranked)


def page() -> str:
    """The page with the table as it should be."""
    return _TABLE.sub(lambda _: table(), (FOLDER / "README.md").read_text())


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page())
    sys.stdout.write(f"{FOLDER / 'README.md'}: {len(RULES)} rules\n")
