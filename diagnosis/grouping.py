"""Groups findings by cause: consequences are nested under the finding that causes them."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from ackscope.findings import Finding
from ackscope.second_source import SettingsUnknown
from diagnosis.contract import Keys, Relation, Rule
from diagnosis.view import View


def group_by_cause(findings: Sequence[Finding], rules: Mapping[str, Rule], view: View) -> list[Finding]:
    """Return the findings that are causes, each with its consequences and with the severity of the worst of them.

    Args:
        findings: flat, most harmful first. If two explain each other, the first is the cause.
        rules: rules by name.
        view: the view that relations look up keys in.
    """
    covered = _covered(findings, rules, view)
    parents: dict[int, int] = {}
    # Start with the least harmful finding: if two explain each other, it becomes the consequence.
    for place, finding in reversed(list(enumerate(findings))):
        for cause in sorted(set(_causes(finding, covered, view))):
            if cause != place and not _descends(cause, place, parents):
                parents[place] = cause
                break
    children: dict[int, list[int]] = {}
    for place in parents:
        children.setdefault(_root(place, parents), []).append(place)
    return [
        _with(finding, [findings[child] for child in sorted(children.get(place, ()))])
        for place, finding in enumerate(findings)
        if place not in parents
    ]


_Covered = dict[str, dict[Relation, dict[Hashable, list[int]]]]
"""Explained rule -> relation -> key -> indexes of the causes, most harmful first."""

_MOST = 2
"""Causes stored per key: the first, and a second in case the first is the finding itself."""


def _covered(findings: Sequence[Finding], rules: Mapping[str, Rule], view: View) -> _Covered:
    covered: _Covered = {}
    for place, finding in enumerate(findings):
        rule = rules.get(finding.rule)
        for each in rule.explains if rule else ():
            keys = _keys(each.where.of_cause, view, finding)
            for name in each.rules:
                by_key = covered.setdefault(name, {}).setdefault(each.where, {})
                for key in keys:
                    places = by_key.setdefault(key, [])
                    if len(places) < _MOST:
                        places.append(place)
    return covered


def _causes(finding: Finding, covered: _Covered, view: View) -> Iterator[int]:
    for relation, by_key in covered.get(finding.rule, {}).items():
        for key in _keys(relation.of_other, view, finding):
            yield from by_key.get(key, ())


def _keys(keys: Keys, view: View, finding: Finding) -> tuple[Hashable, ...]:
    """Return the keys of a finding; none if they depend on settings of a queue that are not known."""
    try:
        return tuple(keys(view, finding))
    except SettingsUnknown:
        return ()


def _root(place: int, parents: Mapping[int, int]) -> int:
    while place in parents:
        place = parents[place]
    return place


def _descends(place: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    """Return whether making `place` the cause of `ancestor` would create a cycle."""
    while place in parents:
        place = parents[place]
        if place == ancestor:
            return True
    return False


def _with(cause: Finding, consequences: Sequence[Finding]) -> Finding:
    if not consequences:
        return cause
    worst = min((cause, *consequences), key=lambda finding: finding.severity.urgency).severity
    return replace(cause, severity=worst, consequences=tuple(consequences))
