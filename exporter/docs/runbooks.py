"""Write the table of docs/runbooks/README.md anew: `python -m exporter.docs.runbooks`."""

import re
import sys

from diagnosis.contract import Harm
from diagnosis.rules import RULES
from exporter.runbooks import FOLDER

_HARMS = {Harm.LOSES: "loses them", Harm.STOPS: "stops them", Harm.SLOWS: "slows them", Harm.RISKS: "puts them at risk"}
_TABLE = re.compile(r"(?<=\| rule \| in a few words \| what it does to messages \|\n\|---\|---\|---\|\n)(\|.*\n)+")


def table() -> str:
    """A line a rule, the most harmful first."""
    ranked = sorted(RULES, key=lambda rule: (rule.harm, rule.name))
    return "".join(f"| [{rule.name}]({rule.name}.md) | {rule.title} | {_HARMS[rule.harm]} |\n" for rule in ranked)


def page() -> str:
    """The page with the table as it should be."""
    return _TABLE.sub(lambda _: table(), (FOLDER / "README.md").read_text())


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page())
    sys.stdout.write(f"{FOLDER / 'README.md'}: {len(RULES)} rules\n")
