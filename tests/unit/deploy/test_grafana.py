import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/grafana"
SPECS = sorted(FOLDER.glob("*.yml"))


def build():
    """Return the build script as a module."""
    found = importlib.util.spec_from_file_location("build", FOLDER / "build.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


BUILD = build()


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_the_json_is_made_from_the_yaml(path):
    """The JSON is never edited by hand: `python deploy/grafana/build.py` builds it."""
    assert BUILD.as_json(path) == path.with_suffix(".json").read_text()


def panels():
    """Return every panel with a query, and its dashboard."""
    boards = [json.loads(path.with_suffix(".json").read_text()) for path in SPECS]
    return [(board, panel) for board in boards for panel in board["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize(("board", "panel"), panels(), ids=lambda value: value["title"])
def test_every_panel_says_what_it_shows_of_metrics_that_there_are(board, panel):
    """A sentence, a unit, an expression for the chosen cluster, and metrics of the reference."""
    reference = (ROOT / "docs/metrics.md").read_text()
    expressions = [target["expr"] for target in panel["targets"]]
    asked = {name for text in expressions for name in re.findall(r"\b(?:ackscope|rabbitmq)_\w+", text)}
    known = {re.sub(r"_(bucket|sum|count)$", "", name) for name in asked}

    assert panel["description"].endswith(".")
    assert asked
    assert [] == sorted(name for name in known if f"`{name}`" not in reference)
    assert all('cluster="$cluster"' in text or "landing" in text or "pipeline" in text for text in expressions)
    assert board["uid"].startswith("ackscope-")


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_panels_neither_overlap_nor_leave_the_page(path):
    """24 columns."""
    taken = set()
    for panel in json.loads(path.with_suffix(".json").read_text())["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}

        assert place["x"] + place["w"] <= 24
        assert not cells & taken

        taken |= cells
