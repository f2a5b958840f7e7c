"""Tests of the packages and the direction of their imports."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab", "bench")


def test_the_import_contracts_hold() -> None:
    """The contracts themselves stand in pyproject.toml, under importlinter."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("room", ROOMS)
def test_files_stay_small(room: str) -> None:
    """At 500 lines a file has to be split."""
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / room).rglob("*.py")}

    assert {} == {path: size for path, size in sizes.items() if size > 500}


@pytest.mark.parametrize("room", ROOMS)
def test_every_room_is_typed(room: str) -> None:
    """Each package has the py.typed marker."""
    assert (ROOT / room / "py.typed").exists()


def test_no_lock_file_names_a_registry() -> None:
    """Versions are pinned by hash; where they come from is the reader's own configuration."""
    lock = (ROOT / "requirements.lock").read_text()

    assert "://" not in lock
    assert "--hash=sha256:" in lock


SENTENCES = {
    "summary",
    "cause",
    "what",
    "value",
    "expected",
    "source",
    "because",
    "needs",
    "next_steps",
    "note",
    "text",
}
"""Attributes that hold text for people; keys of the same names in JSON."""
PARSERS = {"match", "search", "fullmatch", "findall", "finditer", "split", "rsplit", "partition", "rpartition", "sub"}


def parsed_sentences(tree: ast.Module) -> Iterator[str]:
    """Calls that take a text for people apart: `re.match(p, finding.summary)`, `step["text"].partition(":")`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in PARSERS:
            continue
        for part in (node.func.value, *node.args):
            if isinstance(part, ast.Attribute) and part.attr in SENTENCES:
                yield ast.unparse(node)
            if (
                isinstance(part, ast.Subscript)
                and isinstance(part.slice, ast.Constant)
                and part.slice.value in SENTENCES
            ):
                yield ast.unparse(node)


@pytest.mark.parametrize("room", ["exporter", "dashboard", "diagnosis"])
def test_no_sentence_is_parsed_back(room: str) -> None:
    """Rooms exchange data: code that needs a number or a name of a finding takes it from its facts."""
    found = {
        f"{path.relative_to(ROOT)}: {call}"
        for path in (ROOT / room).rglob("*.py")
        for call in parsed_sentences(ast.parse(path.read_text()))
    }

    assert set() == found


def test_steps_are_read_as_data() -> None:
    """`next_steps` is for other programs only: it is text and command in one line."""
    readers = {
        str(path.relative_to(ROOT))
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "next_steps"
    }

    assert set() == readers
