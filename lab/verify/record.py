"""Record the runs for docs/semantics.md: `python -m lab.verify.record [VERSION ...]`, in the checkout, 2 min each.

All claims are checked on a private broker with one node; claims about clusters again with three nodes.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ackscope.errors import MissingPart
from lab.brokers import SUITES
from lab.verify.docs import CLUSTER, load, page

_ROOT = Path(__file__).parents[2]
FOLDER = _ROOT / "tests/fixtures/verify"
PAGE = _ROOT / "docs/semantics.md"


def record(broker: str) -> Path:
    """Check every claim on a version of the lab, and return the file with the results.

    Raises:
        MissingPart: the run failed.
    """
    document = _run(broker)
    again = {row["id"]: row for row in _run(broker, "--nodes", "3", "--only", ",".join(CLUSTER))["rows"]}
    document["rows"] = [again.get(row["id"], row) for row in document["rows"]]
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{document['broker'].split()[1]}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _run(broker: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "ackscope", "verify", "--lab", "--broker", broker, *options, "--json"]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise MissingPart(f"ackscope verify --lab --broker {broker} failed; see its error above")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


if __name__ == "__main__":
    for asked in sys.argv[1:] or SUITES:
        print(record(asked))
    PAGE.write_text(page(load(FOLDER)))
