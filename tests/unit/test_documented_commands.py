"""Every command in the documentation is one that the program accepts: its name, its options, its values."""

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackscope.__main__ import COMMANDS, command_parser

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/benchmarks.md"
"""Its code blocks are results, in which `ackscope` is the name of a row."""

PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("diagnosis/catalogue/*.md")} - {RESULTS})
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```(?:sh|bash|console|)\n(.*?)^```|((?:^    \S.*\n)+)", re.MULTILINE | re.DOTALL)
START = re.compile(r"\s*(?:\$ |sudo )?(?:\S*/)?ackscope (?!:)")
END = re.compile(r"\s[#|;&>]|\s2>")
LEFT_OUT = "..."
"""Stands for options that were shown before."""


def commands(page: Path) -> Iterator[tuple[str, ...]]:
    """The words of each command in the code blocks of a page, without `ackscope`."""
    for fenced, indented in BLOCK.findall(FRONT_MATTER.sub("", page.read_text())):
        for line in (fenced or indented).replace("\\\n", " ").splitlines():
            start = START.match(line)
            if start:
                yield tuple(shlex.split(END.split(line[start.end() :])[0]))


def is_accepted(words: tuple[str, ...]) -> bool:
    """Whether the program accepts the command."""
    name, *rest = words
    if name == "--version" or "--help" in rest:
        return True
    if name not in COMMANDS:
        return False
    given = [word for word in rest if word != LEFT_OUT]
    if len(given) < len(rest) and given[-1].startswith("--"):
        given.append("amqp://host")
    try:
        command_parser(name, importlib.import_module(COMMANDS[name].module)).parse_args(given)
    except SystemExit:
        return False
    return True


def test_the_search_finds_commands() -> None:
    """README alone has more than ten."""
    assert len(list(commands(ROOT / "README.md"))) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documented_commands_are_accepted(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands, options and values that exist."""
    refused = [" ".join(words) for words in commands(page) if not is_accepted(words)]

    assert [] == refused, capsys.readouterr().err
