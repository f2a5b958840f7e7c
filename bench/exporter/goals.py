"""Goals of benchmarks: a measured value, its limit, and whether it is met."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.exporter.contenders import OURS, RABBITMQ_EXPORTER
from bench.usage import MB

_MIN_VALUES = 3

RSS_QUEUES, RSS_MB = 10_000, 200
"""With up to this many queues, the memory of ackscope must stay below this many MB."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A limit and the measured value.

    Attributes:
        seen: measured value; None if there is none.
        most: the limit.
        low, high: confidence interval from the noise between stretches. `low` is None if unknown; `high` is None if
            `low` is known and there is no upper bound.
    """

    what: str
    seen: float | None
    most: float
    low: float | None = None
    high: float | None = None

    @property
    def met(self) -> bool | None:
        """Return whether the goal is met, or None without a value or if the interval contains the limit."""
        if self.seen is None or (self.low is not None and self.low <= self.most < (self.high or math.inf)):
            return None
        return self.seen <= self.most

    def as_dict(self) -> dict[str, Any]:
        """Return it as a dict for the document; `Goal(**...)` reads it back."""
        return asdict(self)

    def line(self) -> str:
        """Return the line for the output."""
        verdict = {None: "could not tell", True: "met", False: "NOT met"}[self.met]
        seen = "-" if self.seen is None else f"{self.seen:.3g}"
        bounds = ""
        if self.low is not None:
            bounds = f" ({self.low:.2g} to {'any' if self.high is None else f'{self.high:.2g}'})"
        return f"{verdict}: {self.what}: {seen}{bounds}, at most {self.most:.3g}"


def cpu_goal(seen: float | None, low: float | None, high: float | None) -> Goal:
    """Return the goal: monitoring costs the broker at most 25 % of what rabbitmq_exporter costs."""
    return Goal("broker CPU, as a share of rabbitmq_exporter's", seen, 0.25, low, high)


def ratio(part: float | None, whole: float | None) -> float | None:
    """Return the quotient, or None if a value is missing or the divisor is not positive."""
    return None if part is None or whole is None or whole <= 0 else part / whole


def noise(values: Sequence[float]) -> float | None:
    """Return twice the standard error of the mean, or None for fewer than three values."""
    return 2 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) >= _MIN_VALUES else None


def between(
    above: float, below: float, squares: tuple[float, float], shared: float = 0.0
) -> tuple[float, float | None]:
    """Return the confidence interval of the quotient of two means, as `low` and `high` of a goal.

    It takes both noises into account at once: both means are rarely at their limits in opposite directions (Fieller,
    Some problems in interval estimation, 1954).

    Args:
        above: mean in the numerator.
        below: mean in the denominator.
        squares: four times the variance of each mean.
        shared: four times their covariance; 0 if they are independent.
    """
    # The bounds of the quotient r are the roots of a r^2 - 2 b r + c.
    a, b, c = below**2 - squares[1], above * below - shared, above**2 - squares[0]
    if a <= 0 or below <= 0:
        return 0.0, None
    # Rounding may make it slightly negative.
    apart = math.sqrt(max(0.0, b**2 - a * c))
    return max(0.0, (b - apart) / a), max(0.0, (b + apart) / a)


def bounds(part: Sequence[float], whole: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the confidence interval of the quotient of the means of two independent samples; see `between`."""
    around_part, around_whole = noise(part), noise(whole)
    if around_part is None or around_whole is None:
        return None, None
    return between(statistics.fmean(part), statistics.fmean(whole), (around_part**2, around_whole**2))


def peer_goals(shown: Mapping[str, Mapping[str, Any]], queues: int, interval: float) -> list[Goal]:
    """Return the goals of the comparison with peers at one size."""
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
