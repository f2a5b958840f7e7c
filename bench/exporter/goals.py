"""Goals beside figures: what was wanted, what was seen, and whether that is enough."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bench.exporter.contenders import ENDED, OURS
from bench.usage import MB

RSS_QUEUES, RSS_MB = 10_000, 200
"""At this many queues ours shall stay below so many MB."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One.

    Attributes:
        seen: the figure; None where it could not be had.
        most: the largest that is enough.
    """

    what: str
    seen: float | None
    most: float

    @property
    def met(self) -> bool | None:
        """Whether it is; None where nothing was seen."""
        return None if self.seen is None else self.seen <= self.most

    def as_dict(self) -> dict[str, Any]:
        """For the document; `Goal(**...)` reads it back."""
        return asdict(self)

    def line(self) -> str:
        """For the table."""
        verdict = {None: "could not tell", True: "met", False: "NOT met"}[self.met]
        seen = "-" if self.seen is None else f"{self.seen:.3g}"
        return f"{verdict}: {self.what}: {seen}, at most {self.most:.3g}"


def ratio(part: float | None, whole: float | None) -> float | None:
    """Their quotient; None where one is missing or the second not above zero."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def peer_goals(shown: Mapping[str, Mapping[str, Any]], queues: int, interval: float) -> list[Goal]:
    """The goals of the comparison with the peers at one size."""
    ours, ended = shown[OURS], shown[ENDED]
    goals = [
        Goal("broker CPU, as a share of the ended exporter's", ratio(ours["added_cpu"], ended["added_cpu"]), 0.25),
        Goal("scrape time, as a share of the ended exporter's", ratio(ours["scrape"], ended["scrape"]), 0.2),
        Goal(f"age of the totals, in intervals in force ({interval:g} s or longer)", ours["oldest_totals"], 2.0),
    ]
    if queues <= RSS_QUEUES:
        goals.append(Goal("memory of ackscope, MB at its peak", ratio(ours["peak"], MB), RSS_MB))
    return goals
