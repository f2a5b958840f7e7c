"""`ackscope runbook`: print the runbook of a rule, or list all rules."""

import argparse
import re
import shutil
import sys
from textwrap import wrap

from ackscope.cli import nearest, print_json
from ackscope.errors import UsageError
from diagnosis.pages import pages
from exporter.commands.report import NARROWEST, WIDEST

_ITEM = re.compile(r" *([-*]|\d+\.) ")
_AS_IT_IS = re.compile(r"$|#|\||    ")
"""Lines that are no text: empty ones, headings, tables, commands."""
_CODE, _NO_BREAK = re.compile(r"`[^`]+`"), "\0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("rule", nargs="?", metavar="RULE", help="rule of a finding; without it, list them")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON document")


def run(args: argparse.Namespace) -> int:
    """Print one runbook as Markdown, or name, impact and title of every rule, the worst impact first. Returns 0.

    On a terminal, its text is as wide as the terminal, at most 100 columns; commands are never wrapped.

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
        body = page.body.strip()
        print(wrapped(body, shutil.get_terminal_size().columns) if sys.stdout.isatty() else body)
    return 0


def wrapped(markdown: str, width: int) -> str:
    """Markdown with its paragraphs and list items wrapped to a width, used between 40 and 100 columns."""
    columns, blocks, is_text = max(NARROWEST, min(width, WIDEST)), list[tuple[bool, str]](), False
    for line in markdown.splitlines():
        # In the middle of a paragraph or item, an indented line is text.
        item = _ITEM.match(line) if is_text or not line.startswith("    ") else None
        if is_text and line.strip() and not item and not line.startswith(("#", "|")):
            blocks[-1] = (True, f"{blocks[-1][1]} {line.strip()}")
            continue
        is_text = item is not None or not _AS_IT_IS.match(line)
        blocks.append((is_text, line))
    return "\n".join(_wrapped_block(text, columns) if wraps else text for wraps, text in blocks)


def _wrapped_block(text: str, columns: int) -> str:
    """A paragraph, or an item of a list with its other lines below its text."""
    item = _ITEM.match(text)
    hanging = " " * (item.end() if item else 0)
    whole = _CODE.sub(lambda code: code[0].replace(" ", _NO_BREAK), text)
    lines = wrap(whole, columns, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_NO_BREAK, " ")
