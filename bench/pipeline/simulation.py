"""Simulation of a cluster: published, ready, delivered and acked messages, step by step.

Queues are filled and drained by Poisson counts, so backlogs, full prefetch windows and starved queues downstream
emerge: an incident changes one cause (consumers, speed, a node's memory), and the rest follows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench.pipeline import incident_plan as kinds
from bench.pipeline.cluster import MAX_DELAY, Bools, ClusterShape, Floats, Ints
from bench.pipeline.incident_plan import Planned

DAY = 86400
# Seconds between two values of the slow noise, which correlates over about three hours.
_KNOT = 600

_MEMORY = np.exp(-_KNOT / 10800)
_ROUND_TRIP = 0.0005
# Minutes of a nightly batch, and the multiple of the queue's own rate that it adds.
_BATCH, _BATCH_TIMES = 40, 12.0

# Mean minutes between deploys of a queue's consumers, which are then absent for a minute.
_DEPLOY_EVERY = 8 * 1440

# Mean minutes between gaps without polls: 5 to 40 minutes without any row.
_GAP_EVERY = 7 * 1440

# Memory alarm threshold of a node, bytes.
LIMIT = 6 * 1024**3

# Share of the threshold that an empty node uses, and bytes per ready message.
_USUAL, _A_MESSAGE = 0.35, 2500


@dataclass(frozen=True, slots=True)
class SimulatedSteps:
    """Some steps of a history, arrays of (steps, queues) or (steps, nodes) or (steps,).

    Attributes:
        first: start of the first step, seconds since 1970.
        step: seconds.
        there: the queue exists and its node is up.
        away: no polls: no row of this step may be landed or rolled up.
        generation: increases with every deploy of the queue's consumers, whose channels are then new.
        disk: factor of the confirm latency of persistent messages.
        network: additional latency of every response, seconds.
        blocked: publishers are blocked by a memory alarm.
    """

    first: int
    step: int
    away: Bools
    there: Bools
    published: Ints
    delivered: Ints
    acked: Ints
    redelivered: Ints
    ready: Ints
    unacked: Ints
    consumers: Ints
    prefetch: Ints
    generation: Ints
    up: Bools
    memory: Ints
    disk: Floats
    network: Floats
    blocked: Bools

    def __len__(self) -> int:
        return len(self.away)


class Simulation:
    """One history of one cluster.

    Args:
        shape: the cluster.
        plan: the planned incidents.
        dice: source of randomness.
        start: seconds since 1970, a full minute.
        minutes: duration.
        step: seconds; divides a minute, or is one.

    Attributes:
        settled: incident -> minute since the start at which its backlog was drained; known once that has passed.
    """

    def __init__(
        self,
        shape: ClusterShape,
        plan: Sequence[Planned],
        dice: np.random.Generator,
        start: int,
        minutes: int,
        step: int = 60,
    ) -> None:
        self.settled: dict[Planned, int] = {}
        self._shape, self._plan, self._dice = shape, tuple(plan), dice
        self._start, self._minutes, self._step = start, minutes, step
        queues = len(shape)
        self._slow = dice.normal(0.0, 1.0, queues)
        self._waiting: Floats = np.zeros(queues)
        self._in_flight: Ints = np.zeros(queues, dtype=np.int64)
        self._in_transit: Floats = np.zeros((MAX_DELAY * 60 // step + 1, queues))
        self._burst_left: Ints = np.zeros(queues, dtype=np.int64)
        self._burst_times: Floats = np.ones(queues)
        self._generation: Ints = np.zeros(queues, dtype=np.int64)
        self._poison: Floats = np.zeros(queues)
        self._before: dict[Planned, float] = {}
        self._usual: dict[Planned, float] = {}
        gaps = dice.poisson(minutes / _GAP_EVERY)
        self._gaps = [(at, at + int(dice.integers(5, 41))) for at in dice.integers(0, minutes, gaps).tolist()]

    def stretches(self, minutes: int) -> Iterator[SimulatedSteps]:
        """Yield the whole history in parts of so many minutes; iterate once."""
        for first in range(0, self._minutes, minutes):
            yield self._stretch(first, min(minutes, self._minutes - first))

    def _stretch(self, minute: int, minutes: int) -> SimulatedSteps:
        steps = minutes * 60 // self._step
        rates = self._rates(minute * 60, steps)
        recorded: dict[str, list[Floats]] = {}
        for number in range(steps):
            at = minute * 60 + number * self._step
            for name, values in self._advance(at, rates[number]).items():
                recorded.setdefault(name, []).append(values)
        stacked = {name: np.stack(values) for name, values in recorded.items()}
        whole = {name: stacked.pop(name).astype(np.bool_) for name in ("there", "up", "blocked", "away")}
        slow = {name: stacked.pop(name).astype(np.float64) for name in ("disk", "network")}
        rest = {name: values.astype(np.int64) for name, values in stacked.items()}
        return SimulatedSteps(self._start + minute * 60, self._step, **whole, **slow, **rest)  # type: ignore[arg-type]

    # -------------------------------------------------------- what publishers do by themselves

    def _rates(self, since: int, steps: int) -> Floats:
        """Return messages per second, by season and noise."""
        shape, dice = self._shape, self._dice
        seconds = self._start + since + np.arange(steps) * self._step
        hour = (seconds % DAY / 3600)[:, None]
        turn = 2 * np.pi * (hour - shape.peak) / 24
        season = 1 + shape.swing * (0.85 * np.cos(turn) + 0.15 * np.cos(2 * turn))
        rest = _weekend(seconds)[:, None]
        season = season * (1 + rest * (shape.weekend - 1))
        knots = [self._slow]
        for _ in range(-(-steps * self._step // _KNOT)):
            fresh = dice.normal(0.0, 1.0, len(shape))
            knots.append(_MEMORY * knots[-1] + np.sqrt(1 - _MEMORY**2) * fresh)
        self._slow = knots[-1]
        place = np.arange(steps) * self._step / _KNOT
        low = place.astype(np.int64)
        share = (place - low)[:, None]
        stacked = np.stack(knots)
        noise = (stacked[low] * (1 - share) + stacked[low + 1] * share) * shape.restless * 1.5
        fast = dice.normal(0.0, 1.0, (steps, len(shape))) * shape.restless
        minute_of_day = (seconds % DAY // 60)[:, None] - shape.nightly
        batch = (shape.nightly >= 0) & (minute_of_day >= 0) & (minute_of_day < _BATCH)
        rates: Floats = shape.rate * (season * np.exp(noise + fast) + batch * _BATCH_TIMES)
        return rates

    def _bursts(self) -> Floats:
        """Return the factors of the active bursts."""
        dice, minutes = self._dice, self._step / 60
        self._burst_left = np.maximum(self._burst_left - 1, 0)
        begins = (dice.random(len(self._shape)) < minutes / 60 / self._shape.burst_every) & (self._burst_left == 0)
        if begins.any():
            length = np.minimum(dice.geometric(0.25, begins.sum()), 12)
            self._burst_left[begins] = np.ceil(length / minutes)
            self._burst_times[begins] = dice.uniform(1.5, 5.0, begins.sum())
        return np.where(self._burst_left > 0, self._burst_times, 1.0)

    # -------------------------------------------------------- one step

    def _advance(self, at: int, rate: Floats) -> dict[str, Floats]:
        shape, dice, minute = self._shape, self._dice, at // 60
        scene = _Scene(shape, self._dice)
        for planned in self._plan:
            if planned.began <= minute < planned.ended:
                if planned not in self._usual:
                    self._usual[planned] = float(rate[planned.queue])
                    self._before[planned] = float(self._waiting[planned.queue]) if planned.queue >= 0 else 0.0
                scene.happen(planned, minute - planned.began, rate, self._usual[planned])
        alive = (minute > shape.born) & (minute <= shape.removed)
        there = alive & (scene.up[shape.node] | shape.quorum)
        deployed = self._deploys(minute, scene.deployed)
        consumers = np.where(deployed, 0, scene.consumers)
        factor = 0.0 if scene.blocked else self._bursts() * scene.publishing
        ring, slot = self._in_transit, at // self._step % len(self._in_transit)
        come = np.where(there, dice.poisson(rate * factor * self._step), 0) + np.where(there, ring[slot], 0)
        # Messages to a queue that is not there are retried by their publishers.
        ring[(slot + 1) % len(ring)] += np.where(there, 0, ring[slot])
        ring[slot] = 0
        trip = _ROUND_TRIP + scene.network
        ability = consumers * np.minimum(shape.workers / shape.work, scene.prefetch / (shape.work + trip)) * scene.speed
        room = np.where(there, ability * self._step, 0)
        delivered_now = np.minimum(dice.poisson(np.minimum(room, 1e9)), self._waiting + come)
        self._waiting = self._waiting + come - delivered_now
        # Messages of consumers that are replaced are redelivered to the new ones.
        again = np.where(deployed & there, self._in_flight, 0) + np.where(
            there, dice.poisson(scene.loop * self._step), 0
        )
        rejected = dice.binomial(delivered_now.astype(np.int64), scene.rejecting)
        acked = np.minimum(delivered_now - rejected, delivered_now)
        self._pass_on(slot, acked, rejected)
        window = consumers * scene.prefetch
        flight = dice.poisson(np.minimum(delivered_now / self._step * (shape.work + trip), 1e6)) + np.minimum(
            scene.loop, 50
        )
        self._in_flight = np.minimum(np.where(self._waiting >= 1, window, flight), window).astype(np.int64)
        self._settle(minute)
        return {
            "away": np.array(any(low <= minute < high for low, high in self._gaps)),
            "there": there,
            "published": come,
            "delivered": delivered_now + again,
            "acked": acked,
            "redelivered": again,
            "ready": self._waiting + np.where(there, dice.poisson(np.minimum(rate * 0.01, 3)), 0) * (come > 0),
            "unacked": self._in_flight,
            "consumers": consumers,
            "prefetch": scene.prefetch,
            "generation": self._generation.copy(),
            "up": scene.up,
            "memory": self._used(at, scene),
            "disk": np.array(scene.disk),
            "network": np.array(scene.network),
            "blocked": np.array(scene.blocked),
        }

    def _deploys(self, minute: int, forced: Bools) -> Bools:
        """Return the queues whose consumers are replaced in this step."""
        hour = (self._start // 60 + minute) % 1440 / 60
        often = 3.0 if 8 <= hour < 17 else 0.2
        now = self._dice.random(len(self._shape)) < often * self._step / 60 / _DEPLOY_EVERY
        now = (now & (self._shape.consumers > 0)) | forced
        self._generation += now
        return now

    def _pass_on(self, slot: int, acked: Floats, rejected: Ints) -> None:
        """Pass processed messages to the next queue, and rejected ones to the dead-letter queue, minutes later."""
        shape, ring = self._shape, self._in_transit
        steps = 60 // self._step
        feeding = np.flatnonzero(shape.feeds >= 0)
        places = (slot + shape.delay[feeding] * steps) % len(ring)
        np.add.at(ring, (places, shape.feeds[feeding]), acked[feeding])
        losing = np.flatnonzero((shape.dead >= 0) & (rejected > 0))
        if len(losing):
            np.add.at(ring[(slot + 3 * steps) % len(ring)], shape.dead[losing], rejected[losing])

    def _used(self, at: int, scene: "_Scene") -> Floats:
        """Return the memory of every node, bytes."""
        held = np.bincount(self._shape.node, self._waiting + self._in_flight, len(scene.up)) * _A_MESSAGE
        daily = 1 + 0.06 * np.cos(2 * np.pi * ((self._start + at) % DAY / 3600 - 14) / 24)
        own = LIMIT * _USUAL * daily * (1 + self._dice.normal(0, 0.015, len(scene.up)))
        used: Floats = np.where(scene.up, np.minimum(own * scene.load + held + scene.eaten * LIMIT, LIMIT * 1.05), 0)
        return used

    def _settle(self, minute: int) -> None:
        """Record incidents whose backlog is drained."""
        for planned in self._plan:
            if minute >= planned.ended and planned not in self.settled:
                left = self._waiting[planned.queue] if planned.queue >= 0 else 0.0
                if left <= 1.5 * self._before.get(planned, 0.0) + 20:
                    self.settled[planned] = minute


class _Scene:
    """The effect of incidents on one step."""

    def __init__(self, shape: ClusterShape, dice: np.random.Generator) -> None:
        queues, nodes = len(shape), len(shape.node_names)
        self._shape, self._dice = shape, dice
        self.consumers, self.prefetch = shape.consumers, shape.prefetch
        self.speed, self.publishing = np.ones(queues), np.ones(queues)
        # A few messages are rejected on any day.
        self.rejecting = np.where(shape.dead >= 0, 0.0001, 0.0)
        self.loop = np.zeros(queues)
        self.deployed = np.zeros(queues, dtype=np.bool_)
        self.up = np.ones(nodes, dtype=np.bool_)
        self.eaten, self.load = np.zeros(nodes), np.ones(nodes)
        self.disk, self.network, self.blocked = 1.0, 0.0, False

    def happen(self, planned: Planned, age: int, rate: Floats, usual: float) -> None:
        """Apply an incident, `age` minutes after it began; `usual` is the queue's rate of that minute."""
        shape, queue, bad = self._shape, planned.queue, planned.strength
        used = usual * shape.work[queue] / shape.workers[queue] / max(1, shape.consumers[queue])
        match planned.kind:
            case kinds.CONSUMER_STOPS:
                self.consumers = _with(self.consumers, queue, 0)
            case kinds.CONSUMER_SLOWS:
                self.speed[queue] = min(1.0, used * (0.6 - 0.4 * bad))
            case kinds.PUBLISHER_BURST:
                self.publishing[queue] = 3 + 5 * bad
            case kinds.REQUEUE_LOOP:
                self.loop[queue] = 5 + 40 * bad + rate[queue]
                self.speed[queue] = 0.8
            case kinds.DISK_SLOWS:
                self.disk = 3 + 9 * bad
                # Publishers with a window of outstanding confirms send less once it is full.
                held = shape.quorum & (age >= 3)
                self.publishing = np.where(held, 0.75 - 0.2 * bad, self.publishing)
            case kinds.NETWORK_SLOWS:
                self.network = 0.01 + 0.05 * bad
            case kinds.MEMORY_ALARM:
                self.eaten[planned.node] = 0.7 * min(1.0, (age + 1) / (6 + 6 * bad))
                self.blocked = self.eaten[planned.node] >= 0.62
            case kinds.NODE_DIES:
                self.up[planned.node] = False
                if age >= 4:
                    self.load *= 1.2
            case kinds.PREFETCH_TOO_SMALL:
                self.prefetch = _with(self.prefetch, queue, 1)
                self.speed[queue] = min(1.0, used * (0.7 - 0.3 * bad))
                self.deployed[queue] = age == 0
            case kinds.DEPLOY_HALVES:
                self.speed[queue] = min(1.0, used * 0.5)
                self.deployed[queue] = age == 0
            case kinds.BACKLOG_LEAK:
                # A little slower than the publish rate, whatever it is.
                self.speed[queue] = min(1.0, used * rate[queue] / max(usual, 1e-9) * (0.92 - 0.2 * bad))
            case kinds.DEAD_LETTERS:
                # Retried first, dead-lettered three minutes later.
                share = 0.15 + 0.4 * bad
                self.loop[queue] = rate[queue] * share * 3
                self.rejecting[queue] = share


def _with(values: Ints, place: int, value: int) -> Ints:
    changed = values.copy()
    changed[place] = value
    return changed


def _weekend(seconds: Ints) -> Floats:
    """Return 0 on workdays, 1 at the weekend, with hours of transition."""
    # 1970 began on a Thursday.
    hour = (seconds / 3600 + 72) % 168
    late = np.where(hour < 84, hour + 168, hour)
    return np.minimum(np.clip((late - 117) / 6, 0, 1), np.clip((171 - late) / 6, 0, 1))
