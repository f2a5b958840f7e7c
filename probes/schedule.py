"""When messages are meant to go: fixed in advance, whatever the broker does (open loop).

Time is cut into slots of 1/rate, one message a slot at a random place in it. The rate is exact over any stretch, and no
period of ours can fall into step with the broker's own timers (200 ms store timer, 5 s statistics).

Three things can keep a message from going on time, and each is told differently:

* The client was late, or the bound of outstanding messages was reached: the message goes later and keeps its
  intended time, so that the wait stays in its send delay and response time.
* It waited so long that a caller would have given up (`give_up`): it is never sent, and counts as undecided.
* The broker blocks publishers, or there is no connection (`pause`, or no schedule at all): nothing is meant to go in
  that time. The gap is told as state and blocked seconds; it is not filled afterwards.
"""

import math
from collections import deque
from random import Random

_HELD_MOST = 200_000


class Schedule:
    """Intended send times of one epoch, in seconds of the monotonic clock, in order."""

    def __init__(self, rate: float, start: float, random: Random) -> None:
        self._gap = 1.0 / rate
        self._random = random
        self._held: deque[float] = deque()
        self._origin, self._slot, self._coming = start, 0, 0.0
        self._paused = False
        self._draw()

    @property
    def next_at(self) -> float:
        """When the next message is meant to go, or was; infinity while paused with nothing waiting."""
        if self._held:
            return self._held[0]
        return math.inf if self._paused else self._coming

    def take(self, now: float, most: int) -> list[float]:
        """Intended times of at most `most` messages that are due, the oldest first."""
        due_times: list[float] = []
        while len(due_times) < most:
            due = self.next_at
            if due > now:
                break
            due_times.append(due)
            self._advance()
        return due_times

    def give_up(self, before: float) -> list[float]:
        """Intended times of messages that were due at or before `before` and will never be sent now."""
        return self.take(before, _HELD_MOST)

    def pause(self, now: float) -> None:
        """Mean nothing to go from `now` on; what was due before still is."""
        if not self._paused:
            self._held.extend(self.take(now, _HELD_MOST))
            self._paused = True

    def resume(self, now: float) -> None:
        """Mean messages to go again from `now` on."""
        if self._paused:
            self._paused = False
            self._origin, self._slot = now, 0
            self._draw()

    def _advance(self) -> None:
        if self._held:
            self._held.popleft()
        else:
            self._slot += 1
            self._draw()

    def _draw(self) -> None:
        self._coming = self._origin + (self._slot + self._random.random()) * self._gap
