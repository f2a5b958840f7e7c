"""Every command in the documentation is one that the program accepts, and a test runs it or a reason is given."""

import importlib
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ackscope.__main__ import COMMANDS, command_parser
from tests.documented import (
    CATALOGUE,
    DOCS,
    HERE,
    ROOT,
    RUN_BY,
    ackscope_commands,
    beginning,
    commands,
    lines,
    not_run_here,
)

PAGES = [*DOCS, *CATALOGUE]
LEFT_OUT = "..."
"""Stands for options that were shown before."""

OPTION = re.compile(r"--[a-z][\w.-]+")
IMPORTED = re.compile(r"^from (tests\.\S+) import", re.MULTILINE)
NAMED = re.compile(r"`(tests/\S+\.py)`")


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


def documented() -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Every command of every page but the catalogue's."""
    for page in DOCS:
        for line in lines(page):
            for words in commands(line):
                yield page.relative_to(ROOT), words


def source(path: Path) -> str:
    """A test with what it imports from other modules of tests."""
    text = path.read_text()
    imported = (ROOT / f"{name.replace('.', '/')}.py" for name in IMPORTED.findall(text))
    return text + "".join(each.read_text() for each in imported if each.exists())


def test_the_search_finds_commands() -> None:
    """README alone has more than ten."""
    assert len(list(ackscope_commands(ROOT / "README.md"))) > 10


def test_a_line_is_read_as_by_a_shell(tmp_path: Path) -> None:
    """Continued and quoted lines, comments, prompts, variables, folders of programs, several commands in one line."""
    page = tmp_path / "page.md"
    page.write_text(
        "make text of a paragraph\n```yaml\nmake: no command\n```\n"
        "```sh\nA=1 sudo/bin/ackscope exporter \\\n  --x  # why\nB='a\nb' curl -d '{\n}' > file && cd /tmp\n```\n"
        "- a list\n\n  ```console\n  $ make demo\n  its output\n  ```\n\n    python -m x | grep y\n"
    )

    assert [
        ("ackscope", "exporter", "--x"),
        ("curl", "-d", "{\n}"),
        ("cd", "/tmp"),
        ("make", "demo"),
        ("python", "-m", "x"),
        ("grep", "y"),
    ] == [words for line in lines(page) for words in commands(line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_documented_commands_are_accepted(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands, options and values that exist."""
    refused = [" ".join(words) for words in ackscope_commands(page) if not is_accepted(words)]

    assert [] == refused, capsys.readouterr().err


def test_each_command_is_run_by_a_test_or_has_a_reason() -> None:
    """Exactly one of both; a new command is decided about in tests/documented.py or CONTRIBUTING.md."""
    excused = not_run_here()
    undecided = [
        f"{page}: {' '.join(words)}"
        for page, words in documented()
        if (beginning(words, RUN_BY) is None) == (beginning(words, excused) is None)
    ]

    assert [] == undecided


def test_no_decision_is_about_a_command_that_is_gone() -> None:
    """Each beginning is that of a documented command."""
    excused = not_run_here()
    used = {beginning(words, known) for _, words in documented() for known in (RUN_BY, excused)}

    assert set() == {*RUN_BY, *excused} - used


def test_the_reasons_name_tests_that_exist() -> None:
    """A reason says what is tested instead."""
    named = {name for reason in not_run_here().values() for name in NAMED.findall(reason)}

    assert named
    assert [] == sorted(name for name in named if not (ROOT / name).is_file())


def test_the_test_of_a_command_uses_each_of_its_options() -> None:
    """So that a documented option is one that was seen to work."""
    missing = [
        f"{page}: {' '.join(words)}: {option} is not in {path}"
        for page, words in documented()
        if (path := RUN_BY.get(beginning(words, RUN_BY) or "", HERE)) != HERE
        for option in OPTION.findall(" ".join(words))
        if option not in source(ROOT / path)
    ]

    assert [] == missing


def test_make_knows_each_documented_target() -> None:
    """And its variables become options that the program accepts."""
    targets = [words for _, words in documented() if words[0] == "make"]
    dry = {
        words: subprocess.run([*words, "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
        for words in targets
    }

    assert {} == {words: done.stderr for words, done in dry.items() if done.returncode}

    demo = next(done.stdout for words, done in dry.items() if words[1] == "demo")
    (words,) = (each for line in demo.splitlines() for each in commands(line) if "ackscope" in "".join(each[:2]))

    assert is_accepted(words[words.index(".venv/bin/ackscope") + 1 :])
    assert set(re.findall(r"[\w.-]+=([\w.-]+)", " ".join(targets[0]))) <= set(words)
