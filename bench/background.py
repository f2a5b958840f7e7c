"""A thread that works while a `with` block runs."""

import threading
from typing import Self


class BackgroundThread:
    """Runs `_run` in a thread inside a `with` block; `_run` ends soon after `_end` is set."""

    def __init__(self, name: str) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        raise NotImplementedError
