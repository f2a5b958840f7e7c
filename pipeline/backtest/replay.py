"""Runs the diagnosis over recorded snapshots, once for each of several settings. Pure."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ackscope.clock import Instant
from ackscope.findings import DiagnosisResult, Finding, flat
from ackscope.snapshot import Snapshot
from diagnosis.contract import Rule, RuleResult, View
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from pipeline.backtest.episodes import Episode, EpisodeTracker
from pipeline.backtest.recorded import UNRECORDED, FieldReads, NoBands, NoOutcomes

_ALONE_EVERY = 100
"""Snapshots after which every rule is run alone."""

_OF_ANY_RULE = frozenset({"not_read", "read_once", "no_counters", "hidden_queues", "stale_details", "silent_queues"})
"""Reasons that the engine finds before it evaluates a rule, from what is recorded."""

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
    related: Sequence[Rule],
    reads: FieldReads,
    start: float = 0.0,
) -> Replay:
    """Diagnose every snapshot with every setting.

    Args:
        cluster: its name.
        snapshots: in order of time.
        settings: thresholds to compare.
        rules: the rules to compare.
        related: these, and the others on which it depends what their findings are.
        reads: where reads of what is not recorded are noted, by rule.
        start: snapshots before it, seconds since 1970, only fill the window; what began there is reported, too.
    """
    noting = {rule.name: _noting(rule, reads) for rule in (*related, *rules)}
    compared, everything = ([noting[rule.name] for rule in given] for given in (rules, related))
    window, result = Window.empty(cluster), Replay()
    runs = [_Run(thresholds, compared, everything, reads) for thresholds in settings]
    for number, snapshot in enumerate(snapshots):
        window, now = window.add(snapshot), snapshot.taken
        for index, run in enumerate(runs):
            verdict, began = run.take(window, now)
            if index == 0:
                # A value that rules share is computed, and its reads noted, for the first of them only. So a finding
                # is judged once more by its own rule alone, and from time to time every rule is.
                alone = noting if number % _ALONE_EVERY == _ALONE_EVERY - 1 else {finding.rule for finding in began}
                for rule in alone:
                    run.diagnose(window, now, [noting[rule]], None)
                if now.wall >= start:
                    skipped = {gap.rule for gap in verdict.inconclusive if gap.reason in _NOT_JUDGED}
                    result.judged.update(rule.name for rule in compared if rule.name not in skipped)
        if now.wall >= start:
            result.diagnoses += 1
            result.first = now.wall if result.first is None else result.first
            result.last = now.wall
    result.episodes = [run.tracker.episodes() for run in runs]
    return result


class _Run:
    """The diagnosis with one setting.

    Other rules matter only where a compared one has a finding. Until then only the compared ones are run. When one has
    a finding, the others are run over the time for which findings are held (`Thresholds.hold`) first: so the result is
    that of running them always.
    """

    def __init__(
        self, thresholds: Thresholds, compared: Sequence[Rule], everything: Sequence[Rule], reads: FieldReads
    ) -> None:
        self.tracker = EpisodeTracker({rule.name for rule in compared})
        self._thresholds, self._compared, self._everything = thresholds, compared, everything
        self._reads = reads
        self._none, self._bands = NoOutcomes(reads), NoBands(reads)
        self._before: DiagnosisResult | None = None
        self._recent: deque[tuple[Window, Instant]] = deque()

    def take(self, window: Window, now: Instant) -> tuple[DiagnosisResult, list[Finding]]:
        """Diagnose a window; return the result, and the findings that begin with it."""
        verdict = self._before
        if verdict is None:
            verdict = self.diagnose(window, now, self._compared, None)
            if verdict.findings and len(self._everything) > len(self._compared):
                verdict = self._caught_up(window, now)
            elif verdict.findings:
                self._before = verdict
        else:
            verdict = self.diagnose(window, now, self._everything, verdict)
            names = self.tracker.rules
            self._before = verdict if any(each.rule in names for each in flat(verdict.findings)) else None
        self._recent.append((window, now))
        while now.since(self._recent[0][1]) > self._thresholds.hold:
            self._recent.popleft()
        return verdict, self.tracker.take(verdict, now.wall, self._blind(verdict))

    def _blind(self, verdict: DiagnosisResult) -> set[str]:
        """Return the rules that were inconclusive then, too: not those that only miss what is not recorded."""
        missing = {rule for rule, names in self._reads.found.items() if names & UNRECORDED}
        return {gap.rule for gap in verdict.inconclusive if gap.rule not in missing or gap.reason in _OF_ANY_RULE}

    def diagnose(
        self, window: Window, now: Instant, rules: Sequence[Rule], before: DiagnosisResult | None
    ) -> DiagnosisResult:
        """Run some rules."""
        return diagnose(window, self._none, now, self._thresholds, before, rules, self._bands)

    def _caught_up(self, window: Window, now: Instant) -> DiagnosisResult:
        before = None
        for earlier, at in self._recent:
            if now.since(at) <= self._thresholds.hold + 1.0:
                before = self.diagnose(earlier, at, self._everything, before)
        self._before = self.diagnose(window, now, self._everything, before)
        return self._before


def _noting(rule: Rule, reads: FieldReads) -> Rule:
    """Return the rule, whose reads of absent fields are noted under its name."""

    def evaluate(view: View) -> Iterator[RuleResult]:
        reads.rule = rule.name
        try:
            yield from rule.evaluate(view)
        finally:
            reads.rule = None

    return replace(rule, evaluate=evaluate)
