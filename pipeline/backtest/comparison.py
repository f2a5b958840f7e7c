"""Settings side by side: what each finds, misses and reports for nothing. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ackscope.findings import Severity
from pipeline.backtest.episodes import Episode
from pipeline.backtest.truth import Truth

WEEK = 7 * 86400.0
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class ReplayedHistory:
    """What was replayed of one cluster.

    Attributes:
        seconds: length of the history.
        truths: what really happened.
        settings: episodes by setting, in the order of the settings.
        start: episodes that began before it do not count as begun, seconds since 1970.
    """

    cluster: str
    seconds: float
    truths: Sequence[Truth]
    settings: Sequence[Sequence[Episode]]
    start: float = 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """How one setting did.

    Attributes:
        begins: episodes that began, of the severity that counts.
        false: those that report nothing that happened.
        false_a_week: the same per week and cluster.
        found, lost: things that happened and were reported, or not.
        earlier_seconds: by how much the first report of a thing came before its beginning, median; negative if after
            it. None without any.
        later_seconds: by how much it came after that of the first setting, median.
        latest_seconds: the same, maximum.
        flapping: largest number of begins of one finding within an hour.
        again: begins within an hour after the same finding ended.
    """

    begins: int
    false: int
    false_a_week: float
    found: int
    lost: int
    earlier_seconds: float | None
    later_seconds: float | None
    latest_seconds: float | None
    flapping: int
    again: int


@dataclass(frozen=True, slots=True)
class Matched:
    """The episodes of one setting, matched with what happened.

    Attributes:
        begun: episodes that began, each with the moment from which it counts.
        false: those that match nothing.
        first: index of a truth -> (the earliest moment of an episode that reports it, by how much it is earlier).
    """

    begun: tuple[tuple[Episode, float], ...]
    false: tuple[Episode, ...]
    first: dict[int, tuple[float, float]]


def match(episodes: Iterable[Episode], truths: Sequence[Truth], severity: Severity, start: float = 0.0) -> Matched:
    """Match episodes with what happened."""
    begun, false = [], []
    first: dict[int, tuple[float, float]] = {}
    by_subject: dict[tuple[str, str, str] | None, list[int]] = {}
    for index, truth in enumerate(truths):
        for subject in truth.subjects or (None,):
            by_subject.setdefault(subject, []).append(index)
    for episode in episodes:
        at = episode.at(severity)
        if at is None:
            continue
        near = [*by_subject.get((episode.key[1], episode.key[2], episode.key[3]), ()), *by_subject.get(None, ())]
        mine = [index for index in near if truths[index].matches(episode, at)]
        for index in mine:
            found = (at, truths[index].earlier(episode, at))
            first[index] = min(first.get(index, found), found)
        if at >= start:
            begun.append((episode, at))
            if not mine:
                false.append(episode)
    return Matched(tuple(begun), tuple(false), first)


def scores(histories: Sequence[ReplayedHistory], rules: Sequence[str], severity: Severity) -> list[Score]:
    """Return how each setting did over some clusters, as far as some rules are concerned."""
    count = len(histories[0].settings) if histories else 0
    matched = [[_matched(history, index, rules, severity) for history in histories] for index in range(count)]
    truths = sum(len(_truths(history, rules)) for history in histories)
    weeks = sum(history.seconds for history in histories) / WEEK
    return [_score(each, matched[0], truths, weeks) for each in matched]


def _matched(history: ReplayedHistory, index: int, rules: Sequence[str], severity: Severity) -> Matched:
    mine = [it for it in history.settings[index] if it.rule in rules]
    return match(mine, _truths(history, rules), severity, history.start)


def _truths(history: ReplayedHistory, rules: Sequence[str]) -> list[Truth]:
    return [it for it in history.truths if it.rule is None or it.rule in rules]


def _score(mine: Sequence[Matched], first: Sequence[Matched], truths: int, weeks: float) -> Score:
    found = [earlier for each in mine for _, earlier in each.first.values()]
    later = [
        at - present.first[index][0]
        for each, present in zip(mine, first, strict=True)
        for index, (at, _) in each.first.items()
        if index in present.first
    ]
    false = sum(len(each.false) for each in mine)
    return Score(
        begins=sum(len(each.begun) for each in mine),
        false=false,
        false_a_week=false / weeks if weeks else 0.0,
        found=len(found),
        lost=truths - len(found),
        earlier_seconds=median(found) if found else None,
        later_seconds=median(later) if later else None,
        latest_seconds=max(later, default=None),
        flapping=max((_flapping(each.begun) for each in mine), default=0),
        again=sum(_again(each.begun) for each in mine),
    )


def _by_key(begun: Iterable[tuple[Episode, float]]) -> Iterable[list[tuple[Episode, float]]]:
    found: dict[tuple[str, ...], list[tuple[Episode, float]]] = {}
    for episode, at in sorted(begun, key=lambda it: it[1]):
        found.setdefault(episode.key, []).append((episode, at))
    return found.values()


def _flapping(begun: Iterable[tuple[Episode, float]]) -> int:
    """Return the largest number of begins of one finding within an hour."""
    most = 0
    for same in _by_key(begun):
        moments, low = [at for _, at in same], 0
        for high, at in enumerate(moments):
            while at - moments[low] >= HOUR:
                low += 1
            most = max(most, high - low + 1)
    return most


def _again(begun: Iterable[tuple[Episode, float]]) -> int:
    """Return how many begins came within an hour after the same finding ended."""
    return sum(
        before.ended is not None and at - before.ended < HOUR
        for same in _by_key(begun)
        for (before, _), (_, at) in pairwise(same)
    )
