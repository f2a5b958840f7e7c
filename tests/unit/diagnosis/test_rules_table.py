"""The catalogue registers the rules."""

from pathlib import Path

import pytest
import yaml

from ackscope.snapshot import FAMILIES
from diagnosis.pages import CatalogueError, pages, parse
from diagnosis.rules import RULES
from diagnosis.thresholds import Thresholds

HEADINGS = ("## What it means", "## See it by hand", "## What else looks like it", "## Now", "## Later")
PAGES = pages()


def test_every_page_is_a_rule():
    """The name of a page is the name of its rule; none is left out."""
    assert list(PAGES) == [rule.name for rule in RULES]


@pytest.mark.parametrize("name", PAGES)
def test_a_runbook_has_its_headings_in_order(name):
    """Every runbook has the same headings, so that readers find them quickly."""
    body = PAGES[name].body
    places = [body.find(f"\n{heading}\n") for heading in HEADINGS]

    assert body.startswith(f"# {name}\n")
    assert -1 not in places
    assert sorted(places) == places


@pytest.mark.parametrize("path", sorted(Path("diagnosis/catalogue").glob("*-*.md")), ids=lambda path: path.stem)
def test_texts_of_findings_are_no_markdown(path):
    """Terminal, chat and page show them as they are; only thresholds go to a Markdown page."""
    head = yaml.safe_load(path.read_text().split("\n---\n")[0])

    assert "`" not in str({name: text for name, text in head.items() if name != "thresholds"})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_needs_families_that_exist(rule):
    """The engine looks them up by name."""
    assert set() == set(rule.needs) - set(FAMILIES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_explains_rules_that_exist(rule):
    """A misspelt name would silently explain nothing."""
    assert set() == {name for each in rule.explains for name in each.rules} - set(PAGES)


def test_every_threshold_has_one_owner():
    """The page of one rule describes it for the configuration reference."""
    named = [threshold for page in PAGES.values() for threshold in page.thresholds]
    fields = [
        f"{group}.{name}"
        for group, field in Thresholds.model_fields.items()
        if hasattr(field.annotation, "model_fields") and group != "usual"
        for name in field.annotation.model_fields
    ]

    assert sorted(fields) == sorted(name for name in named if not name.startswith("usual."))
    assert sorted(set(named)) == sorted(named)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# stuck\n", "stuck.md: no front matter; a page begins with a line of three dashes"),
        ("---\ntitle: x\ngroup: consumers\nimpact: outage\nstep: y\n---\n", "step"),
        ("---\ntitle: x\ngroup: consumers\nimpact: harm\n---\n", "impact"),
        ("---\ntitle: [x\n---\n", "stuck.md"),
    ],
    ids=["no-front-matter", "unknown-key", "unknown-impact", "no-yaml"],
)
def test_a_malformed_page_is_named(text, problem):
    """The message names the page and the error."""
    with pytest.raises(CatalogueError, match=problem):
        parse("stuck.md", text)
