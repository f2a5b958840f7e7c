"""The language of the code, as tests: one name, one thing; names and texts in the field's words."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab", "bench")

SHARED_CLASS_NAMES: dict[str, str] = {}
"""Public class names that may exist more than once, and why."""

CONTRACTS = {
    "exporter/api/openapi.py: cannot_tell": "a field of /api/v1/findings",
    "ackscope/arrow_files.py: tell": "a method of Python's files",
    "exporter/api/openapi.py: taken": "a field of /api/v1/snapshot",
    "ackscope/snapshot.py: taken": "a field of /api/v1/snapshot",
    **dict.fromkeys(
        (
            "diagnosis/thresholds/cluster.py: partition_kept",
            "diagnosis/thresholds/consumers.py: stuck_patience",
            "diagnosis/thresholds/nodes.py: restart_told",
            "diagnosis/thresholds/publishers.py: unroutable_patience",
        ),
        "a key of the configuration",
    ),
}
"""Names that others rely on, and why."""

NO_WORDS = {
    "told", "tell", "tells", "telling", "kept", "taken", "taking", "anew", "dear", "mend", "mended", "spelt", "lately",
    "kin", "doorman", "shelf", "shelves", "shelved", "heard", "patience", "stir",
}  # fmt: skip
"""Words that say nothing to a reader who knows RabbitMQ, Prometheus and Spark, as parts of an identifier."""


def trees(room: str) -> Iterator[tuple[Path, ast.Module]]:
    """Every module of a package, parsed."""
    for path in sorted((ROOT / room).rglob("*.py")):
        yield path.relative_to(ROOT), ast.parse(path.read_text())


def words(identifier: str) -> set[str]:
    """The words of a name: `doneAt`, `Done_At` -> done, at."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)}


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Every name that a module gives something: classes, functions, arguments, variables, attributes of classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_no_public_class_name_exists_twice():
    """A search for a name finds one thing."""
    places = defaultdict(list)
    for room in ROOMS:
        for path, tree in trees(room):
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1 and name not in SHARED_CLASS_NAMES}

    assert {} == twice


@pytest.mark.parametrize("room", ROOMS)
def test_names_are_in_the_fields_words(room):
    """Of files too."""
    found = {
        f"{path}: {name}"
        for path, tree in trees(room)
        for name in (path.stem, *identifiers(tree))
        if words(name) & NO_WORDS
    } - set(CONTRACTS)

    assert set() == found
