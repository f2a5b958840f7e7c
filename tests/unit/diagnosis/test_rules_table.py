from pathlib import Path

import pytest

from ackscope.findings import runbook
from ackscope.snapshot import FAMILIES
from diagnosis.rules import RULES

ROOT = Path(__file__).parents[3]
PARTS = ("## What it means", "## See it by hand", "## What else looks like it", "## Now", "## Later")


def test_names_are_unique():
    """Metrics and links hold on to them."""
    assert len(RULES) == len({rule.name for rule in RULES})


def test_every_rule_has_a_runbook_and_every_runbook_a_rule():
    """A finding's link leads somewhere, and no page is left behind."""
    pages = {f"docs/runbooks/{path.name}" for path in (ROOT / "docs/runbooks").glob("*.md")}

    assert {runbook(rule.name) for rule in RULES} == pages - {"docs/runbooks/README.md"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_runbook_has_its_parts_in_order(rule):
    """So that a tired person finds them where they always are."""
    page = (ROOT / runbook(rule.name)).read_text()
    places = [page.find(f"\n{part}\n") for part in PARTS]

    assert page.startswith(f"# {rule.name}\n")
    assert -1 not in places
    assert sorted(places) == places


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_needs_parts_that_exist(rule):
    """The engine looks them up by name."""
    assert set() == set(rule.needs) - set(FAMILIES)
