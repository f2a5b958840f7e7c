"""Background thread that renders pages when snapshots arrive, and the live part once a second.

Neither polls nor scrapes wait for it.
"""

import threading
from collections.abc import Callable

from ackscope.clock import Clock
from ackscope.log import get_logger
from ackscope.tuning import collect_cycles, trim_heap

log = get_logger(__name__)

_PAUSE = 2.0
"""Pause after each page, as a multiple of its duration. It limits rendering to a third of a core."""
_TIDY_SECONDS = 300.0
_TICK_SECONDS = 1.0


class RenderThread:
    """Calls `refresh` after `wake`. Several wakes during work or a pause are merged into one.

    Args:
        refresh: renders the snapshot part.
        clock: measures the duration of rendering.
        tick: renders the live part; called once a second and after each page.
    """

    def __init__(self, refresh: Callable[[], None], clock: Clock, tick: Callable[[], None] | None = None) -> None:
        self._refresh, self._clock, self._tick = refresh, clock, tick
        self._woken, self._ending = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="refresher", daemon=True)

    def start(self) -> None:
        """Start the thread. Earlier calls of `wake` count."""
        self._thread.start()

    def wake(self) -> None:
        """Signal that a new snapshot has arrived."""
        self._woken.set()

    def stop(self) -> None:
        """Stop when the page in progress is done."""
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
                collect_cycles()
            trim_heap()  # frees the temporary memory of this page and of decoding its snapshots
            self._ending.wait(_PAUSE * self._clock.now().since(began))

    def _guarded(self, work: Callable[[], None] | None) -> None:
        try:
            if work is not None:
                work()
        except Exception:  # Boundary: the previous page stays. If it is outdated, a scrape renders a new one.
            log.exception("rendering the page failed")
