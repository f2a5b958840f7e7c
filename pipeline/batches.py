"""What a source of new landing files and the stream that ingests them agree on."""

from collections.abc import Callable
from typing import Protocol

from ackscope.object_path import Place

# Files of one batch.
MAX_BATCH_FILES = 5000

# Time that a batch gets to end after a stop request; it usually takes a fraction of a second.
STOP_SECONDS = 10.0

# Ingests a batch of files and pauses. The second argument: there may be too many others to include those that arrived
# meanwhile. The third: seconds that the source pauses by itself.
Ingest = Callable[[set[Place], bool, float], None]

# Cancels running work; returns whether there was any.
Cancel = Callable[[], bool]


class Source(Protocol):
    """Reports each new landing file, at least once."""

    def start(self, ingest: Ingest) -> None:
        """Report files from now on, in another thread."""
        ...

    @property
    def is_active(self) -> bool:
        """Whether it still reports files."""
        ...

    @property
    def failure(self) -> Exception | str:
        """Why it is not active any more."""
        ...

    @property
    def reached(self) -> float:
        """Every file that existed at this time, seconds since 1970, is ingested; 0.0 if there are others."""
        ...

    def end(self, cancel: Cancel) -> None:
        """End a running batch, and report nothing more."""
        ...
