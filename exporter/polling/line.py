"""The state of polling one family: what was last good, what it costs, and when it is due."""

from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any

from ackscope.clock import Instant
from ackscope.snapshot import Part
from exporter.broker.calm import Calm
from exporter.broker.families import FAMILIES
from exporter.broker.reader import Spent
from exporter.polling.budget import VITAL_SHARE, Demand

LONGEST_WAIT = 60.0
"""Seconds from one failure to the next attempt, at most."""

PERMANENT_WAIT = 300.0
"""The same where the broker says that it will not: only a change of its settings helps."""

VITAL = ("overview", "nodes", "health")
"""What tells whether the broker is well: cheap, and asked whatever the rest costs."""

CLIENTS = ("channels", "consumers", "connections")
"""What verdicts on clients compare, a reading with the one before: none of them may be long without a second one."""

_FIRST = "overview"

_SURE = 2
"""Readings after which the cost of a family is known: of two, one hiccup is the dearer."""
_GUESSED = 4.0
"""Until then it is read after this many of its shortest intervals at the latest."""
_DOUBTED = 0.05
"""Or later where it would take more than this share of a core: a broker that is slow while it starts, or is asked for
all at once, is so only then; what is compared from reading to reading may take as much as what is vital."""


@dataclass(frozen=True, slots=True)
class PollStats:
    """What polling one family has cost so far.

    Attributes:
        attempts: readings begun and ended, good or not.
        failures: those that failed.
        last_seconds: how long the last one took; None before the first.
        bytes_total: bytes of all answers.
        cost_seconds: of the broker's time, from each request to the end of its answer, less the way.
        requests: how many there were.
        interval: seconds from the beginning of one reading to the next, as the budget has it; None before the first.
    """

    attempts: int = 0
    failures: int = 0
    last_seconds: float | None = None
    bytes_total: int = 0
    cost_seconds: float = 0.0
    requests: int = 0
    interval: float | None = None


@dataclass(slots=True)
class Line:
    """One family of one cluster; the poller's lock guards it.

    Attributes:
        shortest: seconds between the beginnings of two readings when nothing is scarce.
        retry: seconds to the next attempt after a first failure, at least.
        part: the last good reading, and what happened since.
        busy: whether a reading is under way.
        began: when the latest reading began, seconds of the monotonic clock; earlier where it is to be due sooner.
        wait: seconds from then to the next attempt where the latest failed; None where it did not.
        permanent: the broker said that this will not be had.
    """

    name: str
    shortest: float
    retry: float
    part: Part[Any] = field(default_factory=Part)
    stats: PollStats = PollStats()
    busy: bool = False
    began: float = float("-inf")
    wait: float | None = None
    permanent: bool = False
    _costs: deque[float] = field(default_factory=lambda: deque(maxlen=3))
    _calm: Calm = field(init=False)
    _failed: int = 0
    _hurried: bool = False
    _due: float = float("-inf")

    def __post_init__(self) -> None:
        """Begin to count."""
        self._calm = Calm(plain=FAMILIES[self.name].plain)

    @property
    def cost(self) -> float:
        """Seconds of the broker's time for a reading: the least of three, and no more than `Calm.most`.

        They are measured from here: what else the machines do makes a reading longer, and nothing makes it shorter.
        """
        return min(self._took, self._calm.most())

    @property
    def _took(self) -> float:
        return min(self._costs, default=0.0)

    @property
    def demand(self) -> Demand:
        """What it wants of the broker's time."""
        family = FAMILIES[self.name]
        return Demand(
            cost=self.cost,
            shortest=self.shortest,
            vital=self.name in VITAL,
            weight=family.weight,
            least=family.least,
        )

    def measured(self, period: float) -> float:
        """The interval, shorter while its cost is a guess: one hiccup at the start must not silence it for minutes.

        Longer where answers wait for an overloaded broker: it is never asked all the time.

        Args:
            period: seconds, as the budget has it.
        """
        if len(self._costs) >= _SURE:
            return max(period, self._took / VITAL_SHARE) if self.cost < self._took else period
        most = VITAL_SHARE if self.name in CLIENTS else _DOUBTED
        return min(period, max(_GUESSED * self.shortest, self.cost / most))

    def is_due(self, period: float, horizon: float) -> bool:
        """Whether to read now.

        Args:
            period: seconds between two readings.
            horizon: up to which moment of the monotonic clock what is due is read now.
        """
        return not self.busy and self.began + (period if self.wait is None else self.wait) <= horizon

    def start(self, period: float) -> None:
        """A reading begins; what begins early or late for the sake of a round has its next turn as if it had not."""
        self.busy, self._due = True, self.began + period

    def hasten(self) -> None:
        """Make it due at once; what it cost in bad times says nothing of good ones."""
        self.began, self._due, self.wait, self._failed = float("-inf"), float("-inf"), None, 0
        self._hurried = self.busy
        self._costs.clear()

    def pause(self, began: Instant, after: Spent) -> None:
        """Take in a turn that brought no reading anew: of statistics that the next one shows."""
        self.busy, self.began = False, self._beginning(began)
        self._count(after)

    def finish(self, part: Part[Any], began: Instant, ended: Instant, before: Spent, after: Spent) -> None:
        """Take in how a reading ended.

        Args:
            part: with an error where it failed.
            began: when it began.
            ended: when it ended.
            before: what the family had cost when it began.
            after: what it has cost now.
        """
        took, failed, cost = ended.since(began), part.error is not None, after.seconds - before.seconds
        first, hurried = not self.stats.attempts, self._hurried
        self._hurried = False
        self.part, self.busy = part, False
        self.began = began.mono if failed else self._beginning(began)
        self.permanent = False
        self._count(after)
        self.stats = replace(
            self.stats,
            attempts=self.stats.attempts + 1,
            failures=self.stats.failures + failed,
            last_seconds=took,
        )
        if not failed:
            self._costs.append(cost)
            self._calm.note(cost, after.requests - before.requests, after.received - before.received, began.mono)
            self.wait, self._failed = None, 0
            if first:
                # What is read seldom is not read in one heap: the second time comes at a moment of its own.
                self.began -= self.shortest * _phase(self.name)
            return
        self._failed += 1
        if self.name == _FIRST:
            # It tells whether the broker is back: it is asked again soon, however long that takes.
            self.wait = took + self.retry
            return
        soonest = max(self.retry, 2 * took)
        self.wait = max(soonest, min(LONGEST_WAIT, soonest * 2.0 ** min(self._failed - 1, 10)))
        if hurried:
            # It began before the broker was back: that it failed says nothing of now.
            self.wait, self._failed = took, 0

    def _beginning(self, began: Instant) -> float:
        """The moment that intervals are counted from."""
        return self._due if self._due > began.mono - self.retry else began.mono

    def _count(self, after: Spent) -> None:
        self.stats = replace(
            self.stats, bytes_total=after.received, cost_seconds=after.seconds, requests=after.requests
        )

    def told(self) -> Part[Any]:
        """The part with the interval in force; the same object as long as both are."""
        if self.part.every != self.stats.interval:
            self.part = replace(self.part, every=self.stats.interval)
        return self.part

    def give_up(self) -> None:
        """The broker says that this will not be had: ask seldom."""
        self.permanent, self.wait = True, PERMANENT_WAIT


def _phase(name: str) -> float:
    """A part of an interval, less than half, by the name alone."""
    return (sum(name.encode()) % 8) / 16
