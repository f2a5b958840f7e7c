"""The shape of a simulated cluster: its queues, their traffic and chains. Static."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

VHOSTS = ("/", "shop", "analytics")
# Minutes that a message may take from one queue to the next.
MAX_DELAY = 5

_TEAMS = ("orders", "billing", "stock", "mail", "search", "audit", "fraud", "export")
_THINGS = ("created", "changed", "paid", "shipped", "index", "retry", "notify", "sync", "report", "import")


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The queues of one cluster, one array per attribute, all in the same order; rates are messages per second.

    Attributes:
        quorum: True for quorum queues, else classic.
        rate: own publishers' rate on an average weekday; 0 for queues fed by others, and idle ones.
        swing: daily variation, 0 to 0.9.
        peak: busiest hour of the day, UTC.
        weekend: factor on Saturdays and Sundays.
        restless: standard deviation of the slow noise of the logarithm.
        burst_every: mean hours between bursts; a burst lasts 4 minutes on average and at most 12.
        nightly: minute of the day at which a batch begins; -1 without.
        consumers: number of consumers; 0 for queues that nobody drains, such as dead letters.
        work: seconds of work per message.
        workers: messages that one consumer processes in parallel.
        prefetch: of each consumer.
        feeds: index of the queue that its consumers publish to; -1 without.
        delay: minutes until they do.
        dead: index of its dead-letter queue; -1 without.
        born, removed: minutes since the start; a queue that is always there is born before 0 and never removed.
        node: index of its node, for a quorum queue that of its leader.
    """

    names: list[str]
    vhosts: list[str]
    quorum: Bools
    node_names: list[str]
    node: Ints
    rate: Floats
    swing: Floats
    peak: Floats
    weekend: Floats
    restless: Floats
    burst_every: Floats
    nightly: Ints
    consumers: Ints
    work: Floats
    workers: Ints
    prefetch: Ints
    feeds: Ints
    delay: Ints
    dead: Ints
    born: Ints
    removed: Ints

    def __len__(self) -> int:
        return len(self.names)

    @property
    def types(self) -> list[str]:
        """Return the type of every queue, as the broker names it."""
        return ["quorum" if it else "classic" for it in self.quorum]

    def chain(self, queue: int) -> list[int]:
        """Return the queues downstream of a queue, in order."""
        found: list[int] = []
        while (queue := int(self.feeds[queue])) >= 0 and queue not in found:
            found.append(queue)
        return found


def shape(dice: np.random.Generator, queues: int, nodes: int, minutes: int) -> ClusterShape:
    """A random cluster with a few busy queues and many small ones.

    A tenth of the queues are dead-letter queues, a seventh are idle, a quarter form chains of two or three, one in
    twenty runs a nightly batch, and one in twelve is declared or deleted during the history.
    """
    role = dice.random(queues)
    dead_letters, idle = role < 0.1, (role >= 0.1) & (role < 0.24)
    rate = np.exp(dice.normal(-0.5, 1.8, queues)).clip(0.005, 300)
    feeds, delay = np.full(queues, -1), dice.integers(1, MAX_DELAY, queues)
    rate[dead_letters | idle] = 0.0
    working = np.flatnonzero(~dead_letters & ~idle)
    _chain(dice, working, rate, feeds)
    dead = np.full(queues, -1)
    letters = np.flatnonzero(dead_letters)
    if len(letters):
        some = working[dice.random(len(working)) < 0.4]
        dead[some] = letters[np.arange(len(some)) % len(letters)]
    through = _through(rate, feeds)
    workers = dice.choice([1, 4, 10, 20], queues)
    work = np.exp(dice.normal(-4.0, 1.0, queues)).clip(0.001, 0.5)
    # Consumers are 30 to 75 % busy at the peak of the day.
    capacity = np.maximum(through, 0.05) * 1.9 / dice.uniform(0.3, 0.75, queues)
    consumers = np.ceil(capacity * work / workers).astype(np.int64).clip(1, 40)
    consumers[dead_letters] = 0
    work = np.where(dead_letters, work, workers * consumers / capacity)
    born, removed = np.full(queues, -1), np.full(queues, minutes + 1)
    loose = (feeds < 0) & ~np.isin(np.arange(queues), feeds) & ~dead_letters & (dead < 0)
    churn = np.flatnonzero(loose & (dice.random(queues) < 0.3))
    late = dice.random(len(churn)) < 0.5
    born[churn[late]] = dice.integers(1, minutes + 1, late.sum())
    removed[churn[~late]] = dice.integers(1, minutes + 1, (~late).sum())
    return ClusterShape(
        names=_names(dice, queues, letters),
        vhosts=[VHOSTS[it] for it in dice.choice(len(VHOSTS), queues, p=[0.2, 0.6, 0.2])],
        quorum=dice.random(queues) < 0.45,
        node_names=[f"rabbit@node-{number}" for number in range(1, nodes + 1)],
        node=dice.integers(0, nodes, queues),
        rate=rate,
        swing=dice.uniform(0.1, 0.8, queues),
        peak=dice.normal(13.0, 2.5, queues) % 24,
        weekend=dice.uniform(0.25, 1.1, queues),
        restless=dice.uniform(0.03, 0.2, queues),
        burst_every=np.exp(dice.normal(3.5, 1.0, queues)).clip(4, 400),
        nightly=np.where(dice.random(queues) < 0.05, dice.integers(0, 6 * 60, queues), -1),
        consumers=consumers,
        work=work,
        workers=workers,
        prefetch=np.maximum(workers * 2, dice.choice([10, 50, 100], queues)),
        feeds=feeds,
        delay=delay,
        dead=dead,
        born=born,
        removed=removed,
    )


def _chain(dice: np.random.Generator, working: Ints, rate: Floats, feeds: Ints) -> None:
    """Let some queues feed others, which then have no other publishers."""
    order = dice.permutation(working)
    links = len(order) // 8
    # A third of the second stage feeds a third one.
    heads, second, third = order[:links], order[links : 2 * links], order[2 * links : 2 * links + links // 3]
    feeds[heads] = second
    feeds[second[: len(third)]] = third
    rate[second] = rate[third] = 0.0


def _through(rate: Floats, feeds: Ints) -> Floats:
    """Return the total rate of each queue: its own publishers and the queues that feed it."""
    through = rate.copy()
    for _ in range(2):
        fed = np.zeros_like(rate)
        np.add.at(fed, feeds[feeds >= 0], through[feeds >= 0])
        through = rate + fed
    return through


def _names(dice: np.random.Generator, queues: int, letters: Ints) -> list[str]:
    teams, things = dice.integers(0, len(_TEAMS), queues), dice.integers(0, len(_THINGS), queues)
    names = [
        f"{_TEAMS[team]}.{_THINGS[thing]}.{number:04d}"
        for number, (team, thing) in enumerate(zip(teams, things, strict=True))
    ]
    for letter in letters:
        names[letter] = f"dead-letters.{letter:04d}"
    return names
