"""Logs: one line an event on stderr, never a credential."""

import logging
import re
import sys

# The word `password` itself stands in the examples of our own messages.
_CREDENTIALS = re.compile(r"(?<=://)([^/\s:@]*):(?!password@)[^/\s@]+@")


def redact(text: str) -> str:
    """Hide the password of every address in `text`."""
    return _CREDENTIALS.sub(r"\1:***@", text)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def setup_logging(level: str = "info") -> None:
    """Send this process' logs to stderr; foreign libraries speak from warning up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for room in ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab"):
        logging.getLogger(room).setLevel(level.upper())
    # pika logs every step of a refused connection as an error; the probe reports the outcome itself.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
