"""A thread that makes pages when snapshots have arrived: neither a poll nor a scrape waits for it."""

import logging
import threading
from collections.abc import Callable

from ackscope.clock import Clock
from exporter.tuning import give_back, tidy

log = logging.getLogger(__name__)

_PAUSE = 2.0
"""A pause is so many times as long as the work before it: pages cost a third of a core, however often polls end."""
_TIDY_SECONDS = 300.0


class Refresher:
    """Runs `refresh` after each `wake`; wakes that come while it works or pauses are one.

    Args:
        refresh: makes the newest page.
        clock: times it.
    """

    def __init__(self, refresh: Callable[[], None], clock: Clock) -> None:
        self._refresh, self._clock = refresh, clock
        self._wanted, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        """Begin; wakes before this are heard too."""
        self._thread.start()

    def wake(self) -> None:
        """There is a new snapshot."""
        self._wanted.set()

    def stop(self) -> None:
        """End, after the page that is being made."""
        self._ending.set()
        self._wanted.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _run(self) -> None:
        tidied = self._clock.now()
        while True:
            self._wanted.wait()
            if self._ending.is_set():
                return
            self._wanted.clear()
            began = self._clock.now()
            try:
                self._refresh()
            except Exception:  # The boundary: the page before stays, and a scrape that finds it old makes one itself.
                log.exception("making the page of the newest snapshots failed")
            if self._clock.now().since(tidied) > _TIDY_SECONDS:
                tidied = self._clock.now()
                tidy()
            give_back()  # what this page and the decoding of its snapshots took for a moment
            self._ending.wait(_PAUSE * self._clock.now().since(began))
