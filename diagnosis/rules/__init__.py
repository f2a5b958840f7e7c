"""All rules, as the pages of the catalogue register them. `GROUP/RULE_NAME.py` defines the function `evaluate`."""

from collections.abc import Mapping
from importlib import import_module

from diagnosis import relations
from diagnosis.contract import Explains, Relation, Rule
from diagnosis.pages import Explanation, Page, pages


def _rule(name: str, page: Page, explains: tuple[Explains, ...]) -> Rule:
    module = import_module(f"diagnosis.rules.{page.group}.{name.replace('-', '_')}")
    return Rule(
        name=name,
        impact=page.impact,
        needs=page.needs,
        compares_counters=page.compares_counters,
        stays=page.stays,
        by_process=page.by_process,
        needs_management=page.needs_management,
        evaluate=module.evaluate,
        explains=explains,
    )


def _relation(where: str) -> Relation:
    module, _, name = where.rpartition(":")
    holder = import_module(f"diagnosis.rules.{module}") if module else relations
    relation: Relation = getattr(holder, name if module else name.upper())
    return relation


def _explains(catalogue: Mapping[str, Page]) -> dict[str, tuple[Explains, ...]]:
    """Return what each cause explains, whether the page of the cause or of the consequence says so."""
    found = {name: [_as_explains(each) for each in page.explains] for name, page in catalogue.items()}
    for name, page in catalogue.items():
        for each in page.explained_by:
            for cause in each.rules:
                found[cause].append(Explains((name,), _relation(each.where)))
    return {name: tuple(several) for name, several in found.items()}


def _as_explains(each: Explanation) -> Explains:
    return Explains(each.rules, _relation(each.where))


def _load() -> tuple[Rule, ...]:
    catalogue = pages()
    explains = _explains(catalogue)
    return tuple(_rule(name, page, explains[name]) for name, page in catalogue.items())


RULES: tuple[Rule, ...] = _load()
"""All rules, sorted by group and name."""
