"""Common parts of the processes of the lab (workload, faults): their end, and reporting of errors."""

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
    """Return an event that is set when this process should end: SIGTERM, SIGINT, or end of stdin.

    The end of stdin counts only if stdin is a pipe. The parent process holds its other end, so the end of the parent is
    always noticed.
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
    """Run a program of the lab; print an error that the user can act on as one line on stderr."""
    setup_logging()
    try:
        return run()
    except AckscopeError as error:
        print(f"{name}: {redact(str(error))}", file=sys.stderr)
        return error.exit_code
