"""Runs the diagnosis over recorded snapshots, once for each of several settings. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ackscope.findings import DiagnosisResult
from ackscope.snapshot import Snapshot
from diagnosis.contract import Rule, RuleResult, View
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from pipeline.backtest.episodes import Episode, EpisodeTracker
from pipeline.backtest.recorded import FieldReads, NoBands, NoOutcomes

_NOT_JUDGED = frozenset({"not_read", "read_once", "no_counters"})
"""Reasons for which a rule was not evaluated at all."""


@dataclass(slots=True)
class Replay:
    """The result of a replay.

    Attributes:
        episodes: the episodes by setting, in the order of the settings.
        diagnoses: number of snapshots that were diagnosed, each once for every setting.
        judged: rule -> number of diagnoses in which it was evaluated, with the first setting.
        first, last: time of the first and last diagnosis after the lead, seconds since 1970; None without any.
    """

    episodes: list[list[Episode]] = field(default_factory=list)
    diagnoses: int = 0
    judged: Counter[str] = field(default_factory=Counter)
    first: float | None = None
    last: float | None = None


def replay(
    cluster: str,
    snapshots: Iterable[Snapshot],
    settings: Sequence[Thresholds],
    rules: Sequence[Rule],
    reads: FieldReads,
    start: float = 0.0,
    look: Callable[[], None] = lambda: None,
) -> Replay:
    """Diagnose every snapshot with every setting.

    Args:
        cluster: its name.
        snapshots: in order of time.
        settings: thresholds to compare.
        rules: the rules to run.
        reads: where reads of what is not recorded are noted, by rule.
        start: snapshots before it, seconds since 1970, only fill the window; what began there is told, too.
        look: called before each diagnosis; raises to stop.
    """
    noted = tuple(_noting(rule, reads) for rule in rules)
    by_name = {rule.name: rule for rule in noted}
    none, bands = NoOutcomes.of(reads), NoBands(reads)
    window, result = Window.empty(cluster), Replay()
    trackers = [EpisodeTracker() for _ in settings]
    before: list[DiagnosisResult | None] = [None] * len(settings)
    for snapshot in snapshots:
        look()
        window, now = window.add(snapshot), snapshot.taken
        for index, thresholds in enumerate(settings):
            verdict = diagnose(window, none, now, thresholds, before[index], noted, bands)
            before[index] = verdict
            began = trackers[index].take(verdict, now.wall)
            if index == 0:
                # A value that rules share is computed, and its reads noted, for the first of them only: a finding is
                # judged once more by its own rule alone.
                for rule in {finding.rule for finding in began}:
                    diagnose(window, none, now, thresholds, None, (by_name[rule],), bands)
                if now.wall >= start:
                    skipped = {gap.rule for gap in verdict.inconclusive if gap.reason in _NOT_JUDGED}
                    result.judged.update(rule.name for rule in noted if rule.name not in skipped)
        if now.wall >= start:
            result.diagnoses += 1
            result.first = now.wall if result.first is None else result.first
            result.last = now.wall
    result.episodes = [tracker.episodes() for tracker in trackers]
    return result


def _noting(rule: Rule, reads: FieldReads) -> Rule:
    """Return the rule, whose reads of absent fields are noted under its name."""

    def evaluate(view: View) -> Iterator[RuleResult]:
        reads.rule = rule.name
        try:
            yield from rule.evaluate(view)
        finally:
            reads.rule = None

    return replace(rule, evaluate=evaluate)
