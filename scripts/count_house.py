"""Counts that show where the code is hard to read: lines, single-use private functions, what a new rule costs.

Usage: python scripts/count_house.py [--json]   (in the root of a checkout)
"""

import argparse
import ast
import json
import re
from collections import Counter
from pathlib import Path

ROOMS = ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab", "bench")
BEFORE_A_RULE = (
    "diagnosis/contract.py", "diagnosis/view.py", "diagnosis/parts.py", "diagnosis/latest.py", "diagnosis/window.py",
    "diagnosis/series.py", "diagnosis/words.py", "diagnosis/facts.py", "diagnosis/relations.py",
    "diagnosis/preconditions.py", "ackscope/findings.py", "ackscope/snapshot.py", "docs/catalogue.md",
    "diagnosis/rules/queues/stale_head.py", "diagnosis/catalogue/stale-head.md", "docs/runbooks/stale-head.md",
    "diagnosis/rules/queues/__init__.py", "diagnosis/thresholds/queues.py", "diagnosis/rules/queues/telling.py",
    "tests/unit/diagnosis/pictures.py", "tests/unit/diagnosis/queues/test_stale_head.py",
    "lab/faults/fault.py", "lab/faults/queues/stale_head.py",
)  # fmt: skip
"""What somebody reads who adds a rule about queues; of files that were renamed, both names."""


def lines(path: Path) -> int:
    """The number of lines of a file."""
    return len(path.read_text().splitlines())


def main() -> None:
    """Print the counts of this checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    files = {room: sorted(Path(room).rglob("*.py")) for room in ROOMS}
    trees = {path: ast.parse(path.read_text()) for paths in files.values() for path in paths}
    functions = [
        (path, node.name)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    private = [(path, name) for path, name in functions if name.startswith("_") and not name.startswith("__")]
    single = 0
    for path, name in private:
        single += len(re.findall(rf"\b{name}\b", path.read_text())) == 2
    classes = Counter(
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    counts = {
        "product lines": sum(map(lines, trees)),
        **{f"{room} lines": sum(map(lines, paths)) for room, paths in files.items()},
        "catalogue lines": sum(map(lines, Path("diagnosis/catalogue").rglob("*.*"))),
        "runbook lines": sum(map(lines, Path("docs/runbooks").glob("*.md"))),
        "functions": len(functions),
        "private functions": len(private),
        "of these with one call site": f"{single / len(private):.0%}",
        "public class names that exist more than once": sum(number > 1 for number in classes.values()),
        "lines to read before adding a rule": sum(lines(Path(p)) for p in BEFORE_A_RULE if Path(p).exists()),
        "test lines": sum(map(lines, Path("tests").rglob("*.py"))),
    }
    if args.json:
        print(json.dumps(counts, indent=2))
        return
    for name, count in counts.items():
        print(f"{name:<48} {count:>8}")


if __name__ == "__main__":
    main()
