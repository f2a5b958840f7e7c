"""Goals beside figures: what was wanted, what was seen, and whether that is enough."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.exporter.contenders import OURS, RABBITMQ_EXPORTER
from bench.usage import MB

_MIN_VALUES = 3

RSS_QUEUES, RSS_MB = 10_000, 200
"""At this many queues ours shall stay below so many MB."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One.

    Attributes:
        seen: the figure; None where it could not be had.
        most: the largest that is enough.
        low, high: where the truth lies, by the noise between stretches; `low` None where that is not known, `high`
            None beside a `low` where there is no bound.
    """

    what: str
    seen: float | None
    most: float
    low: float | None = None
    high: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether it is; None where nothing was seen, or where noise leaves both possible."""
        if self.seen is None or (self.low is not None and self.low <= self.most < (self.high or math.inf)):
            return None
        return self.seen <= self.most

    def as_dict(self) -> dict[str, Any]:
        """For the document; `Goal(**...)` reads it back."""
        return asdict(self)

    def line(self) -> str:
        """For the table."""
        verdict = {None: "could not tell", True: "met", False: "NOT met"}[self.met]
        seen = "-" if self.seen is None else f"{self.seen:.3g}"
        bounds = ""
        if self.low is not None:
            bounds = f" ({self.low:.2g} to {'any' if self.high is None else f'{self.high:.2g}'})"
        return f"{verdict}: {self.what}: {seen}{bounds}, at most {self.most:.3g}"


def cpu_goal(seen: float | None, low: float | None, high: float | None) -> Goal:
    """That monitoring costs the broker no more than a quarter of what rabbitmq_exporter does."""
    return Goal("broker CPU, as a share of rabbitmq_exporter's", seen, 0.25, low, high)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Their quotient; None where one is missing or the second not above zero."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def noise(values: Sequence[float]) -> float | None:
    """Twice the standard error of their mean; None of fewer than three, which tell too little of it."""
    return 2 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) >= _MIN_VALUES else None


def between(
    above: float, below: float, squares: tuple[float, float], shared: float = 0.0
) -> tuple[float, float | None]:
    """Between what the quotient of two means lies, by their noise: low and high as of a goal.

    Both noises at once: that each mean is off by its most, and against the other, is rarer than either (Fieller, Some
    problems in interval estimation, 1954).

    Args:
        above: the one mean.
        below: the other.
        squares: of the noise of each: four times its variance.
        shared: four times their covariance; 0 where they are independent.
    """
    # Where a r^2 - 2 b r + c is 0 the quotient r is as far off as noise explains.
    a, b, c = below**2 - squares[1], above * below - shared, above**2 - squares[0]
    if a <= 0 or below <= 0:
        return 0.0, None
    # Never below nothing, but for the last digits.
    apart = math.sqrt(max(0.0, b**2 - a * c))
    return max(0.0, (b - apart) / a), max(0.0, (b + apart) / a)


def bounds(part: Sequence[float], whole: Sequence[float]) -> tuple[float | None, float | None]:
    """Between what the quotient of the means of these lies; the means are independent. See `between`."""
    around_part, around_whole = noise(part), noise(whole)
    if around_part is None or around_whole is None:
        return None, None
    return between(statistics.fmean(part), statistics.fmean(whole), (around_part**2, around_whole**2))


def peer_goals(shown: Mapping[str, Mapping[str, Any]], queues: int, interval: float) -> list[Goal]:
    """The goals of the comparison with the peers at one size."""
    ours, theirs = shown[OURS], shown[RABBITMQ_EXPORTER]
    low, high = bounds(ours["added_cpus"], theirs["added_cpus"])
    cpu = ratio(ours["added_cpu"], theirs["added_cpu"])
    goals = [
        cpu_goal(cpu, low, high),
        Goal("scrape time, as a share of rabbitmq_exporter's", ratio(ours["scrape"], theirs["scrape"]), 0.2),
        Goal(f"age of the totals, in intervals in force ({interval:g} s or longer)", ours["oldest_totals"], 2.0),
    ]
    if queues <= RSS_QUEUES:
        goals.append(Goal("memory of ackscope, MB at its peak", ratio(ours["peak"], MB), RSS_MB))
    return goals
