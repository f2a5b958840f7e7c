"""A thread that makes pages when snapshots have arrived, and once a second what changes between them.

Neither a poll nor a scrape waits for it.
"""

import logging
import threading
from collections.abc import Callable

from ackscope.clock import Clock
from ackscope.tuning import give_back, tidy

log = logging.getLogger(__name__)

_PAUSE = 2.0
"""A pause is so many times as long as the work before it: pages cost a third of a core, however often polls end."""
_TIDY_SECONDS = 300.0
_TICK_SECONDS = 1.0


class RenderThread:
    """Runs `refresh` after each `wake`; wakes that come while it works or pauses are one.

    Args:
        refresh: makes the newest page.
        clock: times it.
        tick: makes what changes between snapshots; called once a second, and after each page.
    """

    def __init__(self, refresh: Callable[[], None], clock: Clock, tick: Callable[[], None] | None = None) -> None:
        self._refresh, self._clock, self._tick = refresh, clock, tick
        self._woken, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        """Begin; wakes before this are heard too."""
        self._thread.start()

    def wake(self) -> None:
        """There is a new snapshot."""
        self._woken.set()

    def stop(self) -> None:
        """End, after the page that is being made."""
        self._ending.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _run(self) -> None:
        tidied = self._clock.now()
        while True:
            woken = self._woken.wait(None if self._tick is None else _TICK_SECONDS)
            if self._ending.is_set():
                return
            if not woken:
                self._guarded(self._tick)
                continue
            self._woken.clear()
            began = self._clock.now()
            self._guarded(self._refresh)
            self._guarded(self._tick)
            if self._clock.now().since(tidied) > _TIDY_SECONDS:
                tidied = self._clock.now()
                tidy()
            give_back()  # what this page and the decoding of its snapshots took for a moment
            self._ending.wait(_PAUSE * self._clock.now().since(began))

    def _guarded(self, work: Callable[[], None] | None) -> None:
        try:
            if work is not None:
                work()
        except Exception:  # The boundary: the page before stays, and a scrape that finds it old makes one itself.
            log.exception("making the page of the newest snapshots failed")
