"""Episodes out of a series of diagnoses, as `finding_events` would tell them. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ackscope.findings import DiagnosisResult, Finding, Severity

Key = tuple[str, str, str, str]
"""(rule, kind, vhost, name) of a finding."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One finding from its beginning to its end; times in seconds since 1970.

    Attributes:
        key: rule and subject.
        began: the diagnosis that first had it.
        ended: the first diagnosis without it; None if it was there at the end.
        severity: the highest.
        urgent_at: the first diagnosis in which it was a warning or critical; None if it never was.
    """

    key: Key
    began: float
    ended: float | None
    severity: str
    urgent_at: float | None

    @property
    def rule(self) -> str:
        """Its rule."""
        return self.key[0]

    def at(self, severity: Severity) -> float | None:
        """Return when it first was at least this severe, of information and warning; None if it never was."""
        return self.began if severity is Severity.INFO else self.urgent_at


class EpisodeTracker:
    """Follows the findings of one cluster, diagnosis by diagnosis.

    Args:
        rules: names of the rules whose findings count.
    """

    def __init__(self, rules: Collection[str]) -> None:
        self.rules = frozenset(rules)
        self._open: dict[Key, Episode] = {}
        self._closed: list[Episode] = []

    def take(self, verdict: DiagnosisResult, at: float, blind: Collection[str] | None = None) -> list[Finding]:
        """Take a diagnosis; return the findings that begin with it.

        Consequences belong to their cause and are no findings of their own. A finding stays while its rule is
        inconclusive.

        Args:
            verdict: the diagnosis.
            at: its time, seconds since 1970.
            blind: rules that are inconclusive; None: as the diagnosis says.
        """
        found = {finding.key: finding for finding in verdict.findings if finding.rule in self.rules}
        began = []
        for key, finding in found.items():
            known = self._open.get(key)
            if known is None:
                began.append(finding)
                known = Episode(key, at, None, finding.severity.value, None)
            self._open[key] = _seen(known, finding.severity, at)
        if blind is None:
            blind = {gap.rule for gap in verdict.inconclusive}
        for key in [key for key in self._open if key not in found and key[0] not in blind]:
            self._closed.append(replace(self._open.pop(key), ended=at))
        return began

    def episodes(self) -> list[Episode]:
        """Return all episodes so far, in order of their beginning."""
        return sorted((*self._closed, *self._open.values()), key=lambda it: (it.began, it.key))


def joined(parts: Sequence[tuple[float, float, Sequence[Episode]]]) -> list[Episode]:
    """Join the episodes of consecutive parts of a history, each of which was replayed with some time before it.

    Args:
        parts: (start, end, episodes) in order of time. Episodes that began before `start` are known from the part
            before, if there is one.
    """
    done: list[Episode] = []
    open_: dict[Key, Episode] = {}
    for number, (start, _, episodes) in enumerate(parts):
        carried: dict[Key, Episode] = {}
        for it in episodes:
            if it.began >= start or number == 0:
                continue
            if it.ended is None or it.ended >= start:
                carried[it.key] = it
        for key, before in open_.items():
            later = carried.pop(key, None)
            ended = start if later is None else later.ended
            done.append(_continued(before, later, ended))
        # Seen only with the time before this part: it begins with the part.
        done += [replace(it, began=start, urgent_at=_not_before(it.urgent_at, start)) for it in carried.values()]
        done += [it for it in episodes if it.began >= start or (number == 0 and _reaches(it, start))]
        open_ = {it.key: it for it in done if it.ended is None}
        done = [it for it in done if it.ended is not None]
    return sorted((*done, *open_.values()), key=lambda it: (it.began, it.key))


def _seen(known: Episode, severity: Severity, at: float) -> Episode:
    if severity is not Severity.INFO and known.urgent_at is None:
        known = replace(known, urgent_at=at)
    return replace(known, severity=worst((known.severity, severity.value)))


def worst(severities: Iterable[str]) -> str:
    """Return the most urgent of some severities."""
    order = [it.value for it in Severity]
    return min(severities, key=order.index)


def _continued(before: Episode, later: Episode | None, ended: float | None) -> Episode:
    if later is None:
        return replace(before, ended=ended)
    urgent = before.urgent_at if before.urgent_at is not None else later.urgent_at
    return replace(before, ended=ended, urgent_at=urgent, severity=worst((before.severity, later.severity)))


def _not_before(moment: float | None, start: float) -> float | None:
    return None if moment is None else max(moment, start)


def _reaches(it: Episode, start: float) -> bool:
    return it.ended is None or it.ended >= start
