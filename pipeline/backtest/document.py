"""The result of a backtest as one JSON document per cluster. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ackscope.clock import iso
from ackscope.findings import Severity
from ackscope.ranking import FindingEpisode
from diagnosis.pages import pages
from pipeline.backtest.comparison import ReplayedHistory, match, scores
from pipeline.backtest.proposal import Proposal, grouped
from pipeline.backtest.settings import Setting, unrecorded_needs
from pipeline.backtest.stretches import LANDING, MINUTES
from pipeline.backtest.task import TaskResult
from pipeline.backtest.truth import of_episodes
from pipeline.hours import HOUR

VERSION = 1

EXACT, APPROXIMATE, NOT_REPLAYABLE = "exact", "approximate", "not replayable"


@dataclass(frozen=True, slots=True)
class RuleReplay:
    """Whether the verdicts of a rule can be replayed.

    Attributes:
        replay: `EXACT`: all that it read is recorded. `APPROXIMATE`: it also read fields that are not recorded.
            `NOT_REPLAYABLE`: it needs fields that are not recorded, so a replay without findings proves nothing.
        lacks: fields that the rule reads and the history does not have, such as `connections` or `queues.arguments`.
        recorded: recorded episodes.
        agreed: those that the replay with the thresholds in force has, too.
        unrecorded: episodes of that replay that were not recorded.
    """

    rule: str
    replay: str
    lacks: tuple[str, ...]
    recorded: int
    agreed: int
    unrecorded: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked.

    Attributes:
        start, end: seconds since 1970.
        truth: the file with incidents; "" for recorded episodes.
    """

    rules: Sequence[str]
    severity: Severity
    start: float
    end: float
    truth: str = ""
    brief: float = 0.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed of some clusters.

    Attributes:
        tasks: their tasks.
        recorded: recorded episodes of the compared rules, by cluster.
        missing: hours without data that is fine enough.
    """

    histories: Sequence[ReplayedHistory]
    tasks: Sequence[TaskResult]
    recorded: Mapping[str, Sequence[FindingEpisode]]
    missing: int

    def of(self, cluster: str, missing: int) -> "Replayed":
        """Return what was replayed of one cluster."""
        return Replayed(
            [it for it in self.histories if it.cluster == cluster],
            [it for it in self.tasks if it.cluster == cluster],
            {name: rows for name, rows in self.recorded.items() if name == cluster},
            missing,
        )


def document(
    name: str, asked: Asked, settings: Sequence[Setting], done: Replayed, proposals: Sequence[Proposal], now: float
) -> dict[str, Any]:
    """Return the document of a cluster, or of all of them."""
    rules = [_rule(rule, done) for rule in asked.rules]
    counted = [it.rule for it in rules if it.replay != NOT_REPLAYABLE]
    return {
        "version": VERSION,
        "cluster": name,
        "made_at": iso(now),
        "asked": {
            "rules": list(asked.rules),
            "severity": asked.severity.value,
            "from": iso(asked.start),
            "to": iso(asked.end),
            "truth": asked.truth or "recorded episodes",
            "brief_seconds": asked.brief,
        },
        "data": _data(done),
        "settings": _scores(settings, done, counted, asked.severity),
        "rules": [
            {**asdict(it), "settings": _scores(settings, done, [it.rule], asked.severity)}
            if it.replay != NOT_REPLAYABLE
            else {**asdict(it), "settings": []}
            for it in rules
        ],
        "proposals": [_proposal(it) for it in proposals],
    }


def _scores(settings: Sequence[Setting], done: Replayed, rules: Sequence[str], severity: Severity) -> list[Any]:
    found = scores(done.histories, rules, severity)
    return [
        {"setting": setting.name, "values": dict(setting.values), **asdict(score)}
        for setting, score in zip(settings, found, strict=False)
    ]


def _proposal(it: Proposal) -> dict[str, Any]:
    return {
        "queues": it.queues,
        "values": grouped(it.values),
        "false_now": it.false_now,
        "best": asdict(it.best),
        "others": [asdict(cost) for cost in it.others],
    }


def _data(done: Replayed) -> dict[str, Any]:
    def hours(grain: str) -> int:
        return round(sum(it.end - it.start for it in done.tasks if it.grain == grain) / HOUR)

    first = [it.first for it in done.tasks if it.first is not None]
    last = [it.last for it in done.tasks if it.last is not None]
    return {
        "first": iso(min(first)) if first else None,
        "last": iso(max(last)) if last else None,
        "clusters": len(done.histories),
        "landing_hours": hours(LANDING),
        "minute_hours": hours(MINUTES),
        "missing_hours": done.missing,
        "rows": sum(it.rows for it in done.tasks),
        "diagnoses": sum(it.diagnoses for it in done.tasks),
        "truths": sum(len(it.truths) for it in done.histories),
        "channels_recorded": _share(done.tasks, "channels"),
        "consumers_recorded": _share(done.tasks, "consumers"),
    }


def _share(tasks: Iterable[TaskResult], family: str) -> float | None:
    """Return the share of existing objects that were recorded; None if it is not known how many existed."""
    pairs = [(it.known.get(family, 0), it.existing.get(family, 0)) for it in tasks]
    existing = sum(of for _, of in pairs)
    return sum(known for known, _ in pairs) / existing if existing else None


def _rule(rule: str, done: Replayed) -> RuleReplay:
    missing = unrecorded_needs(rule)
    if missing:
        return RuleReplay(rule, NOT_REPLAYABLE, missing, 0, 0, 0)
    lacks = tuple(sorted({name for it in done.tasks for name in it.lacks.get(rule, ())}))
    judged = sum(it.judged.get(rule, 0) for it in done.tasks)
    if not judged:
        lacks = tuple(f"readings of {name}" for name in pages()[rule].needs)
    found = any(it.rule == rule for history in done.histories for each in history.settings for it in each)
    replay = EXACT if not lacks else APPROXIMATE if found else NOT_REPLAYABLE
    recorded = agreed = unrecorded = 0
    for history in done.histories:
        truths = of_episodes(done.recorded.get(history.cluster, ()), [rule], Severity.INFO)
        mine = [it for it in history.settings[0] if it.rule == rule]
        matched = match(mine, truths, Severity.INFO, history.start)
        recorded += len(truths)
        agreed += len(matched.first)
        unrecorded += len(matched.false)
    return RuleReplay(rule, replay, lacks, recorded, agreed, unrecorded)
