"""Which thresholds to compare, and which rules to run for that. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, ValidationError

from ackscope.cli import nearest, seconds
from ackscope.errors import UsageError
from ackscope.settings import Settings, load
from diagnosis.laws import LAWS
from diagnosis.pages import pages
from diagnosis.rules import RULES
from diagnosis.thresholds import GROUPS, Thresholds
from pipeline.backtest.recorded import FAMILIES, PROBES

PRESENT = "present"
"""Name of the setting that is compared with: the thresholds in force."""

MAX_SETTINGS = 24

_TREND = frozenset({"nodes", "memory", "links", "auth"})
"""Families that a window holds for two hours."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One set of thresholds.

    Attributes:
        name: such as `consumers.slow_for=120`.
        values: what differs from the thresholds in force, by threshold.
    """

    name: str
    thresholds: Thresholds
    values: Mapping[str, Any] = field(default_factory=dict)


class _ConfigFile(Settings):
    """The part of the exporter's configuration that matters here."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)

    diagnosis: Thresholds = Thresholds()


def thresholds_of(config: Path | None) -> Thresholds:
    """Return the thresholds of a configuration file of the exporter; the defaults without one.

    Raises:
        ConfigError: it cannot be used.
    """
    return Thresholds() if config is None else load(_ConfigFile, config).diagnosis


def settings_of(texts: Sequence[str], present: Thresholds) -> list[Setting]:
    """Return the thresholds in force and every combination of the given values.

    Args:
        texts: `threshold=VALUE[,VALUE...]`, one threshold each.
        present: the thresholds in force.

    Raises:
        UsageError: a threshold does not exist, a value does not fit, or there are too many combinations.
    """
    choices = [_choice(text, present) for text in texts]
    if len({name for name, _ in choices}) < len(choices):
        raise UsageError("--set names a threshold twice; give all of its values at once, as in --set slow_for=60,120")
    found = [Setting(PRESENT, present)]
    for values in product(*(values for _, values in choices)) if choices else ():
        changed = {name: value for (name, _), value in zip(choices, values, strict=True)}
        setting = Setting(named(changed), changed_thresholds(present, changed), changed)
        if setting.thresholds != present:
            found.append(setting)
    if len(found) > MAX_SETTINGS:
        raise UsageError(f"--set: {len(found)} combinations are too many, at most {MAX_SETTINGS}; give fewer values")
    return found


def named(values: Mapping[str, Any]) -> str:
    """Return the name of a setting."""
    return ", ".join(f"{name}={_plain(value)}" for name, value in values.items())


def changed_thresholds(present: Thresholds, values: Mapping[str, Any]) -> Thresholds:
    """Return the thresholds with some values replaced; overrides of some queues stay.

    Raises:
        UsageError: a value is out of bounds.
    """
    document = present.model_dump()
    for name, value in values.items():
        group, _, last = name.rpartition(".")
        (document[group] if group else document)[last] = value
    try:
        return Thresholds.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise UsageError(f"--set {where}: {first['msg'][:1].lower()}{first['msg'][1:]}") from None


def chosen_rules(names: Sequence[str], settings: Sequence[Setting]) -> tuple[str, ...]:
    """Return the rules to compare: the named ones, else those that the changed thresholds belong to, else all.

    Raises:
        UsageError: a rule does not exist.
    """
    known = [rule.name for rule in RULES]
    for name in names:
        if name not in known:
            raise UsageError(f"--rule {name!r}: no such rule{nearest(name, known)}")
    if names:
        return tuple(dict.fromkeys(names))
    changed = {name for setting in settings for name in setting.values}
    owners = tuple(name for name, page in pages().items() if changed & page.thresholds.keys())
    return owners or tuple(known)


def replayable(rule: str) -> bool:
    """Return whether everything is recorded that a rule declares to need; probes are what those of probing need."""
    return not unrecorded_needs(rule)


def unrecorded_needs(rule: str) -> tuple[str, ...]:
    """Return what a rule declares to need and the history does not have."""
    page = pages()[rule]
    return (PROBES,) if page.group == "probing" else tuple(name for name in page.needs if name not in FAMILIES)


def related_rules(names: Sequence[str]) -> tuple[str, ...]:
    """Return the rules on which it depends whether a finding of some rules is one of its own, and how severe it is.

    A finding that another one explains is a consequence of that one, and a cause is as severe as its consequences.
    """
    if LAWS & set(names):
        return tuple(rule.name for rule in RULES if replayable(rule.name))
    explained = {rule.name: {other for each in rule.explains for other in each.rules} for rule in RULES}
    explaining: dict[str, set[str]] = {name: set() for name in explained}
    for name, others in explained.items():
        for other in others:
            explaining[other].add(name)
    found = {*names, *_reached(names, explained), *_reached(names, explaining)}
    return tuple(name for name in explained if name in found and (name in names or replayable(name)))


def _reached(names: Sequence[str], steps: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    rest = list(names)
    while rest:
        new = steps.get(rest.pop(), set()) - found
        found |= new
        rest += new
    return found


def needs_trend(rules: Sequence[str]) -> bool:
    """Return whether a rule may look at two hours of nodes, by its declared needs; without any it may."""
    needs = [pages()[rule].needs for rule in rules]
    return any(not each or _TREND & set(each) for each in needs)


def _choice(text: str, present: Thresholds) -> tuple[str, tuple[float, ...]]:
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise UsageError(f"invalid --set {text!r}; use a threshold and its values, as in --set slow_for=60,120")
    known = _names(present)
    same = [each for each in known if name.strip() in (each, each.rpartition(".")[2])]
    if not same:
        raise UsageError(f"--set {name}: no such threshold{nearest(name.strip(), known)}")
    if len(same) > 1:
        raise UsageError(f"--set {name}: several thresholds have this name, use one of {', '.join(same)}")
    return same[0], tuple(_value(same[0], value, present) for value in values.split(","))


def _names(present: Thresholds) -> list[str]:
    """Return every threshold that is a number."""
    own = [name for name in type(present).model_fields if isinstance(getattr(present, name), float)]
    groups = [(group, getattr(present, group)) for group in GROUPS]
    return own + [
        f"{group}.{name}"
        for group, model in groups
        for name in type(model).model_fields
        if isinstance(getattr(model, name), int | float)
    ]


def _value(name: str, text: str, present: Thresholds) -> float:
    group, _, last = name.rpartition(".")
    now = getattr(getattr(present, group) if group else present, last)
    try:
        value = seconds(text)
    except ValueError:
        raise UsageError(f"--set {name}: {text!r} is neither a number nor a duration; use 120 or 2m") from None
    return int(value) if isinstance(now, int) and value.is_integer() else value


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
