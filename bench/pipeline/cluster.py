"""The shape of a made-up cluster: its queues, how busy, how slow, what feeds what. Nothing here moves in time."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

VHOSTS = ("/", "shop", "analytics")
MAX_DELAY = 5
"""Minutes that a message may take from one queue to the next."""

_TEAMS = ("orders", "billing", "stock", "mail", "search", "audit", "fraud", "export")
_THINGS = ("created", "changed", "paid", "shipped", "index", "retry", "notify", "sync", "report", "import")


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """The queues of one cluster, an array an attribute, all in the same order; rates are messages a second.

    Attributes:
        quorum: the others are classic queues.
        rate: what publishers of its own send on an average weekday; 0 for queues that others feed, and idle ones.
        swing: how much of it comes and goes with the day, 0 to 0.9.
        peak: hour of the day that is busiest, UTC.
        weekend: factor of Saturdays and Sundays.
        restless: spread of its slow noise, as of a logarithm.
        burst_every: mean hours from one burst to the next; a burst is short, 4 minutes in the mean and 12 at most.
        nightly: minute of the day at which a batch of its own begins; -1 without.
        consumers: how many; 0 for those that nobody empties, such as dead letters.
        work: seconds of work a message.
        workers: messages that one consumer works on at once.
        prefetch: of each consumer.
        feeds: index of the queue that its consumers publish to; -1 without.
        way: minutes until they do.
        dead: index of its dead-letter queue; -1 without.
        born, gone: minutes since the start; a queue that churn does not touch is born before 0 and never gone.
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
        """The type of every queue, as the broker names it."""
        return ["quorum" if it else "classic" for it in self.quorum]

    def chain(self, queue: int) -> list[int]:
        """The queues that are fed by it, and by those, in order."""
        found: list[int] = []
        while (queue := int(self.feeds[queue])) >= 0 and queue not in found:
            found.append(queue)
        return found


def shape(dice: np.random.Generator, queues: int, nodes: int, minutes: int) -> ClusterShape:
    """A cluster with a few busy queues and many small ones.

    A tenth of the queues hold dead letters, a seventh are idle, a quarter stand in chains of two or three, one in
    twenty runs a batch every night, and one in twelve comes or goes while the history lasts.
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
    # Between 30 and 75 per cent busy at the peak of the day.
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
    """Let some working queues feed others, which then have no publishers of their own."""
    order = dice.permutation(working)
    links = len(order) // 8
    # Three of the second stage feed a third one.
    heads, second, third = order[:links], order[links : 2 * links], order[2 * links : 2 * links + links // 3]
    feeds[heads] = second
    feeds[second[: len(third)]] = third
    rate[second] = rate[third] = 0.0


def _through(rate: Floats, feeds: Ints) -> Floats:
    """What goes through each queue, its own and what others feed it with."""
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
