"""Proposes thresholds per group of queues that reports less for nothing and loses nothing. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ackscope.findings import Severity
from diagnosis.thresholds import Override, Thresholds
from pipeline.backtest.comparison import Matched, ReplayedHistory, match
from pipeline.backtest.episodes import Episode
from pipeline.backtest.settings import Setting, changed_thresholds

EVERYTHING = ""
"""The pattern of a proposal for all objects."""

_PREFIX = re.compile(r"([A-Za-z][A-Za-z0-9]*)([._:/-])")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a setting would do for the queues of one pattern.

    Attributes:
        setting: its name.
        false: episodes for nothing.
        lost: things that are reported now and no longer would be.
        later_seconds: by how much later the others would be reported, median; None without any.
    """

    setting: str
    false: int
    lost: int
    later_seconds: float | None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Other thresholds for the queues of one pattern.

    Attributes:
        queues: regular expression of their names; `EVERYTHING` for all objects.
        values: the thresholds, by name.
        false_now: episodes for nothing with the thresholds in force.
        best: what the proposed setting would do.
        others: what each other setting would do.
    """

    queues: str
    values: Mapping[str, float]
    false_now: int
    best: Cost
    others: tuple[Cost, ...]


def pattern_of(episode: Episode) -> str | None:
    """Return the regular expression for queues like the subject of an episode; None if it is no queue.

    Queues with the same first word belong together: `orders.created` and `orders.paid-2` are both `^orders[.]`.
    """
    _, kind, _, name = episode.key
    if kind != "queue":
        return None
    found = _PREFIX.match(name)
    if found is None:
        return f"^{re.escape(name)}$"
    return f"^{found[1]}[{found[2]}]"


def propose(
    histories: Sequence[ReplayedHistory], settings: Sequence[Setting], rules: Sequence[str], severity: Severity
) -> list[Proposal]:
    """Return the changes that report the least for nothing, while everything that is reported now still is.

    The first setting is that in force. Groups of queues are settled one after the other, those with the most false
    episodes first; each takes the setting with the fewest, and of several the one that reports soonest.
    """
    per_queue = all("." in name for setting in settings for name in setting.values)
    found = _Groups(histories, settings, rules, severity, per_queue=per_queue)
    now = dict.fromkeys(found.names, 0)
    proposals = []
    for group in sorted(found.names, key=lambda name: (-found.false(0, name), name)):
        if group is None:
            continue
        best = min(
            (index for index in range(len(settings)) if not found.loses(now | {group: index})),
            key=lambda index: (found.false(index, group), found.later(index, group) or 0.0, index),
        )
        if found.false(best, group) < found.false(0, group):
            now[group] = best
            costs = [found.cost(index, group) for index in range(len(settings))]
            others = tuple(cost for index, cost in enumerate(costs) if index not in (0, best))
            proposals.append(Proposal(group, settings[best].values, found.false(0, group), costs[best], others))
    return proposals


def as_thresholds(present: Thresholds, proposals: Sequence[Proposal]) -> Thresholds:
    """Return the thresholds in force with all proposals."""
    everywhere = {name: value for it in proposals if it.queues == EVERYTHING for name, value in it.values.items()}
    changed = changed_thresholds(present, everywhere)
    overrides = [Override(queues=it.queues, values=grouped(it.values)) for it in proposals if it.queues != EVERYTHING]
    return changed.model_copy(update={"overrides": (*changed.overrides, *overrides)})


def grouped(values: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """Return thresholds by group and name, as in the configuration."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        group, _, last = name.rpartition(".")
        found.setdefault(group, {})[last] = value
    return found


class _Groups:
    """Episodes by setting and group of queues, matched with what happened."""

    def __init__(
        self,
        histories: Sequence[ReplayedHistory],
        settings: Sequence[Setting],
        rules: Sequence[str],
        severity: Severity,
        *,
        per_queue: bool,
    ) -> None:
        self._settings = settings
        self._matched: dict[tuple[int, str | None], list[Matched]] = {}
        groups: set[str | None] = set()
        parts: dict[tuple[int, str | None, int], list[Episode]] = {}
        for number, history in enumerate(histories):
            for index, episodes in enumerate(history.settings):
                for it in episodes:
                    if it.rule in rules:
                        group = pattern_of(it) if per_queue else EVERYTHING
                        groups.add(group)
                        parts.setdefault((index, group, number), []).append(it)
        self.names = sorted(groups, key=lambda name: name or "")
        for index in range(len(settings)):
            for group in self.names:
                self._matched[index, group] = [
                    match(parts.get((index, group, number), ()), history.truths, severity, history.start)
                    for number, history in enumerate(histories)
                ]
        self._reported = self._found(dict.fromkeys(self.names, 0))

    def false(self, index: int, group: str | None) -> int:
        return sum(len(each.false) for each in self._matched[index, group])

    def loses(self, choice: Mapping[str | None, int]) -> bool:
        """Whether something that is reported now is not with these settings."""
        return bool(self._reported - self._found(choice))

    def later(self, index: int, group: str | None) -> float | None:
        later = [
            at - before.first[truth][0]
            for each, before in zip(self._matched[index, group], self._matched[0, group], strict=True)
            for truth, (at, _) in each.first.items()
            if truth in before.first
        ]
        return median(later) if later else None

    def cost(self, index: int, group: str | None) -> Cost:
        lost = self._reported - self._found(dict.fromkeys(self.names, 0) | {group: index})
        return Cost(self._settings[index].name, self.false(index, group), len(lost), self.later(index, group))

    def _found(self, choice: Mapping[str | None, int]) -> set[tuple[int, int]]:
        return {
            (number, truth)
            for group, index in choice.items()
            for number, each in enumerate(self._matched[index, group])
            for truth in each.first
        }
