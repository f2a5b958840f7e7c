"""Schedules the send times of messages in advance, independent of the broker (open loop).

Time is divided into slots of 1/rate seconds, with one message at a random time in each slot. The rate is exact over any
period, and sending cannot synchronise with timers of the broker (200 ms store timer, 5 s statistics).

Three things can prevent a message from being sent on time, and each is reported differently:

* The client was late, or the limit of outstanding messages was reached: the message is sent later with its original
  scheduled time, so the wait is part of its send delay and response time.
* The message waited so long that an application would have timed out (`give_up`): it is never sent, and counts as
  undecided.
* The broker blocks publishers, or there is no connection (`pause`, or no schedule): nothing is scheduled during that
  time. The gap is reported as state and blocked seconds, and messages are not sent later to make up for it.
"""

import math
from collections import deque
from random import Random

_HELD_MOST = 200_000


class Schedule:
    """Scheduled send times of one epoch, in seconds of the monotonic clock, in order."""

    def __init__(self, rate: float, start: float, random: Random) -> None:
        self._gap = 1.0 / rate
        self._random = random
        self._held: deque[float] = deque()
        self._origin, self._slot, self._coming = start, 0, 0.0
        self._paused = False
        self._draw()

    @property
    def next_at(self) -> float:
        """Scheduled time of the next message, which may be in the past; infinity if paused and nothing is due."""
        if self._held:
            return self._held[0]
        return math.inf if self._paused else self._coming

    def take(self, now: float, most: int) -> list[float]:
        """Remove and return the scheduled times of at most `most` due messages, the oldest first."""
        due_times: list[float] = []
        while len(due_times) < most:
            due = self.next_at
            if due > now:
                break
            due_times.append(due)
            self._advance()
        return due_times

    def give_up(self, before: float) -> list[float]:
        """Remove and return the scheduled times of messages due at or before `before`, which will not be sent."""
        return self.take(before, _HELD_MOST)

    def pause(self, now: float) -> None:
        """Schedule nothing from `now` on. Messages that were due before remain due."""
        if not self._paused:
            self._held.extend(self.take(now, _HELD_MOST))
            self._paused = True

    def resume(self, now: float) -> None:
        """Schedule messages again from `now` on."""
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
