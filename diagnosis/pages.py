"""Reads the catalogue: one Markdown page per rule. Its front matter registers the rule and holds all of its text.

`docs/catalogue.md` explains how to write one. A page is data: its templates are compiled when they are rendered
(`diagnosis/text.py`).
"""

from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from ackscope.findings import Impact

FOLDER = Path(__file__).parent / "catalogue"
SHARED = FOLDER / "shared"
"""Macros (`*.jinja`) and texts (`*.yaml`) that several pages use."""

Group = Literal["publishers", "consumers", "queues", "nodes", "cluster", "clients", "topology", "probing"]
GROUPS: tuple[Group, ...] = (
    "publishers", "consumers", "queues", "nodes", "cluster", "clients", "topology", "probing",
)  # fmt: skip


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(_Model):
    """A text and the condition on facts under which it applies; `when` None means always."""

    when: str | None = None
    text: str


Variants = str | tuple[str | Variant, ...]
"""One text or several. A summary or value uses the first that applies; a cause joins all that apply."""


class StepTemplate(_Model):
    """A next step.

    Attributes:
        when: condition on facts under which it applies; None is always.
        command: for a shell, complete.
        untested: why the command test cannot run the command.
    """

    when: str | None = None
    text: str
    command: str | None = None
    untested: str | None = None


class EvidenceTemplate(_Model):
    """How an observation is shown.

    Attributes:
        label: what it is.
        value: template; without one the value with its unit.
        expected: the value of a healthy system.
    """

    label: Variants
    value: Variants | None = None
    expected: Variants = ""


class Reason(_Model):
    """Why a rule is inconclusive, and what to do about it."""

    because: Variants
    fix: Variants


class Explanation(_Model):
    """Rules that this rule explains (or that explain it), and the relation of their findings.

    Attributes:
        where: a relation of `diagnosis/relations.py` in lower case (`same_subject`), or `module:NAME` in
            `diagnosis/rules`.
    """

    rules: tuple[str, ...]
    where: str


class Shared(_Model):
    """Texts that several rules use."""

    evidence: dict[str, EvidenceTemplate] = {}
    inconclusive: dict[str, Reason] = {}
    suppressed: dict[str, Variants] = {}


class Page(Shared):
    """The front matter of a rule's page.

    Attributes:
        title: a few words for a person.
        needs: families of a snapshot without which the rule cannot be judged.
        compares_counters: it compares message counters, so it needs two readings of queues from a broker that keeps
            counters.
        by_process: it also judges channels of a broker that lists no clients; these are known by their Erlang process.
        needs_management: it needs what only the management API tells of these families, such as members of queues.
        stays: what it reports cannot be undone, so for 12 min after its end it stays as information.
        explains: findings of these rules follow from a finding of this one.
        explained_by: the reverse, so that a new rule needs no edit of the pages of its causes.
        thresholds: what each number that the rule is the owner of means, by `group.name`.
        body: the runbook.
    """

    title: str
    group: Group
    impact: Impact
    needs: tuple[str, ...] = ()
    compares_counters: bool = False
    by_process: bool = False
    needs_management: bool = False
    stays: bool = False
    explains: tuple[Explanation, ...] = ()
    explained_by: tuple[Explanation, ...] = ()
    thresholds: dict[str, str] = {}
    summary: Variants = ""
    cause: Variants = ""
    steps: tuple[str | StepTemplate, ...] = ()
    body: str = ""


class CatalogueError(ValueError):
    """A page is malformed; the message names the page and the error."""


@cache
def pages(folder: Path = FOLDER) -> dict[str, Page]:
    """Return all pages by rule name, sorted by group and name.

    Raises:
        CatalogueError: a page has no front matter, or one that does not fit.
    """
    found = {path.stem: parse(path.name, path.read_text()) for path in folder.glob("*.md") if path.stem != "README"}
    return dict(sorted(found.items(), key=lambda item: (GROUPS.index(item[1].group), item[0])))


def parse(name: str, text: str) -> Page:
    """Parse the text of a page.

    Raises:
        CatalogueError: it has no front matter, or one that does not fit.
    """
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        raise CatalogueError(f"{name}: no front matter; a page begins with a line of three dashes")
    try:
        return Page.model_validate({**_yaml(parts[1]), "body": parts[2].lstrip("\n")})
    except (ValidationError, yaml.YAMLError) as error:
        raise CatalogueError(f"{name}: {error}") from None


@cache
def shared(folder: Path = SHARED) -> Shared:
    """Return the shared texts of all files."""
    merged: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        for section, texts in _yaml(path.read_text()).items():
            merged.setdefault(section, {}).update(texts)
    return Shared.model_validate(merged)


def macros(folder: Path = SHARED) -> str:
    """Return the source of the shared macros of all files."""
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.jinja")))


def _yaml(text: str) -> dict[str, Any]:
    # libyaml is ten times as fast, which saves half a second at each start.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(text, loader) or {}  # noqa: S506  a safe loader, both
    return document
