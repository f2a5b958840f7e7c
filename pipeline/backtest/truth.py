"""What really happened: recorded episodes, or a list of incidents. Pure, except for reading that list."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ackscope.errors import DataError
from ackscope.findings import Severity
from ackscope.ranking import FindingEpisode, ObjectKey
from pipeline.backtest.episodes import Episode

_BEFORE, _AFTER = 120.0, 900.0
"""Seconds before the beginning and after the end of an incident in which an episode may begin and belongs to it."""

_NEAR = 600.0
"""Seconds that a recorded and a replayed episode may be apart: a heartbeat of the recorded rows."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Something that an episode should report; times in seconds since 1970.

    Attributes:
        ended: None while it lasts, or if unknown.
        rule: the rule that reported it; None for an incident, which any rule may report.
        subjects: objects that it is about; none: any object of the cluster.
    """

    began: float
    ended: float | None
    rule: str | None = None
    subjects: frozenset[ObjectKey] = frozenset()

    def matches(self, episode: Episode, at: float) -> bool:
        """Whether an episode that counts from `at` reports it."""
        if self.rule is not None and self.rule != episode.rule:
            return False
        if self.subjects and (episode.key[1], episode.key[2], episode.key[3]) not in self.subjects:
            return False
        before, after = (_BEFORE, _AFTER) if self.rule is None else (_NEAR, _NEAR)
        if self.ended is not None and at > self.ended + after:
            return False
        return episode.ended is None or episode.ended >= self.began - before

    def earlier(self, episode: Episode, at: float) -> float:
        """Return by how many seconds the episode is earlier; negative if it is later."""
        return self.began - (at if self.rule is None else episode.began)


def of_episodes(
    recorded: Iterable[FindingEpisode], rules: Sequence[str], severity: Severity, brief: float = 0.0
) -> list[Truth]:
    """Return the recorded episodes of some rules.

    Args:
        recorded: all of them.
        rules: rules that count.
        severity: the lowest that counts.
        brief: those that ended by themselves within so many seconds do not count: nobody had to act.
    """
    return [
        Truth(it.began, it.ended, it.rule, frozenset({it.subject}))
        for it in recorded
        if it.rule in rules
        and Severity(it.severity).urgency <= severity.urgency
        and not (it.ended is not None and it.ended - it.began < brief)
    ]


def read_incidents(path: Path) -> list[tuple[str | None, Truth]]:
    """Return the incidents of a YAML or JSON file, each with its cluster; None is any.

    Raises:
        DataError: it cannot be read, or an entry does not fit.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise DataError(f"--incidents {path}: cannot be read ({error.strerror}); pass an existing file") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise DataError(f"--incidents {path}: neither YAML nor JSON; see `docs/pipeline.md` for its form") from None
    entries = document.get("incidents") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise DataError(f"--incidents {path}: must be a list of incidents, each with `began` and `ended`")
    return [_incident(path, number, entry) for number, entry in enumerate(entries, start=1)]


def _incident(path: Path, number: int, entry: Any) -> tuple[str | None, Truth]:
    try:
        ended = entry.get("ended")
        subjects = frozenset(
            (str(it["kind"]), str(it.get("vhost") or ""), str(it["name"])) for it in entry.get("objects") or ()
        )
        truth = Truth(_moment(entry["began"]), None if ended is None else _moment(ended), entry.get("rule"), subjects)
        return entry.get("cluster"), truth
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(
            f"--incidents {path}: entry {number} needs `began` and `ended` as 2026-03-01T12:04, and each of its "
            "`objects` a `kind` and a `name`"
        ) from None


def _moment(given: Any) -> float:
    at = given if isinstance(given, datetime) else datetime.fromisoformat(given)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
