"""`ackscope runbook`: print the runbook of a rule, or list all rules."""

import argparse

from ackscope.cli import nearest, print_json
from ackscope.errors import UsageError
from diagnosis.pages import pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("rule", nargs="?", metavar="RULE", help="rule of a finding; without it, list them")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON document")


def run(args: argparse.Namespace) -> int:
    """Print one runbook as Markdown, or name, impact and title of every rule, the worst impact first. Returns 0.

    Raises:
        UsageError: there is no such rule.
    """
    known = pages()
    if args.rule is None:
        ordered = sorted(known.items(), key=lambda item: (item[1].impact.rank, item[0]))
        rows = [{"rule": name, "impact": page.impact, "title": page.title} for name, page in ordered]
        if args.json:
            print_json(rows)
            return 0
        width = max(len(row["rule"]) for row in rows)
        for row in rows:
            print(f"{row['rule']:<{width}}  {row['impact']:<7}  {row['title']}")
        return 0
    page = known.get(args.rule)
    if page is None:
        raise UsageError(f"unknown rule {args.rule!r}{nearest(args.rule, list(known))}; without a name, all are listed")
    if args.json:
        print_json({"rule": args.rule, "impact": page.impact, "title": page.title, "runbook": page.body})
    else:
        print(page.body.strip())
    return 0
