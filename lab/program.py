"""What the processes of the lab (workload, faults) share: their end, and the report of errors."""

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable

from ackscope.errors import AckscopeError
from ackscope.log import redact, setup_logging
from ackscope.unix_signals import UnixSignals


def end_event() -> threading.Event:
    """An event that is set when this process should end: SIGTERM, SIGINT, or end of input.

    The end of input counts only if stdin is a pipe: the starter of this process holds the other end, so its end is
    noticed in every case.
    """
    event = threading.Event()
    signals = UnixSignals((signal.SIGTERM, signal.SIGINT))
    threading.Thread(target=_watch, args=(signals, event), name="signals", daemon=True).start()
    try:
        piped = stat.S_ISFIFO(os.fstat(0).st_mode)
    except OSError:
        piped = False
    if piped:
        threading.Thread(target=_watch_input, args=(event,), name="input", daemon=True).start()
    return event


def _watch(signals: UnixSignals, event: threading.Event) -> None:
    signals.get()
    event.set()


def _watch_input(event: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    event.set()


def main(name: str, run: Callable[[], int]) -> int:
    """Run a program of the lab; an error that the user can act on is one line on stderr."""
    setup_logging()
    try:
        return run()
    except AckscopeError as error:
        print(f"{name}: {redact(str(error))}", file=sys.stderr)
        return error.exit_code
