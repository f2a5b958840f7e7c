"""Logs: one event per line on stderr, as logfmt or JSON, without credentials.

An event is a short constant text; its facts are keys: `log.warning("cluster unreachable", cluster=name, error=text)`.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import structlog
from structlog.stdlib import BoundLogger, ExtraAdder, ProcessorFormatter
from structlog.typing import EventDict, Processor

from ackscope.printable import printable

ROOMS = ("ackscope", "probes", "exporter", "diagnosis", "pipeline", "dashboard", "lab")
FORMATS = ("logfmt", "json")
LEVELS = ("debug", "info", "warning", "error")

# The literal word `password` is not replaced: it is a placeholder in examples.
_CREDENTIALS = re.compile(r"(?<=://)([^/\s:@]*):(?!password@)[^/\s@]+@")

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
)

structlog.configure(
    processors=[structlog.stdlib.filter_by_level, *_SHARED, ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=BoundLogger,
    cache_logger_on_first_use=True,
)


def get_logger(name: str) -> BoundLogger:
    """The logger of a module, named by its `__name__`; keyword arguments of a call become keys of the line."""
    logger: BoundLogger = structlog.stdlib.get_logger(name)
    return logger


def redact(text: str) -> str:
    """The text with the password of every address replaced by `***`."""
    return _CREDENTIALS.sub(r"\1:***@", text)


class _Renderer:
    """Renders an event as one line. In logfmt a traceback follows on separate lines, where people can read it."""

    _KEYS = ("ts", "level", "logger", "msg")

    def __init__(self, style: str) -> None:
        self._json = style == "json"
        self._logfmt = structlog.processors.LogfmtRenderer(key_order=self._KEYS, bool_as_flag=False)
        self._to_json = structlog.processors.JSONRenderer()

    def __call__(self, logger: Any, method: str, event: EventDict) -> str:
        fields = {"ts": event.pop("ts", None), "level": event.pop("level", None), "logger": event.pop("logger", None)}
        fields |= {"msg": event.pop("event", ""), **event}
        if self._json:
            return redact(str(self._to_json(logger, method, fields)))
        traceback = fields.pop("exception", None)
        line = self._logfmt(logger, method, fields)
        return printable(redact(f"{line}\n{traceback}" if traceback else line))


class RepeatFilter(logging.Filter):
    """Lets each warning through once a minute, with the number of those held back before (`repeated`).

    Warnings are the same if event and text facts are; numbers in texts do not count. At most 16 variants of an event
    are told apart, so that names from outside cannot fill the log. A record with `answers=True` answers what a person
    did, such as a reload by signal, and is always written.

    Args:
        now: returns monotonic seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now, self._lock = now, threading.Lock()
        self._held: dict[tuple[str, str], dict[str, tuple[float, int]]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a record; adds its count if others were held back."""
        if record.levelno < logging.WARNING:
            return True
        event = record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
        if event.pop("answers", False):
            return True
        facts = sorted(f"{key}={value}" for key, value in event.items() if isinstance(value, str) and key != "ts")
        variant = _NUMBERS.sub("0", " ".join(facts))
        with self._lock:
            if len(self._held) > _EVENTS:
                self._held.clear()
            known = self._held.setdefault((record.name, _NUMBERS.sub("0", str(event.get("event")))[:200]), {})
            variant = variant if variant in known or len(known) < _VARIANTS else ""
            since, count = known.get(variant, (float("-inf"), 0))
            now = self._now()
            if now - since < _REPEAT_SECONDS:
                known[variant] = (since, count + 1)
                return False
            known[variant] = (now, 0)
        if count and isinstance(record.msg, dict):
            record.msg["repeated"] = count
        return True


_REPEAT_SECONDS, _VARIANTS, _EVENTS = 60.0, 16, 1000
_NUMBERS = re.compile(r"[0-9]+")


def setup_logging(level: str = "info", style: str = "logfmt") -> None:
    """Send the logs of this process to stderr; other libraries log warnings and errors only.

    Args:
        level: one of LEVELS, for the rooms of ackscope.
        style: one of FORMATS.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, ExtraAdder()],
            processors=[
                ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _Renderer(style),
            ],
        )
    )
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for room in ROOMS:
        logging.getLogger(room).setLevel(level.upper())
    # urllib3 logs with a traceback what servers send wrong in headers; the client reports what matters of it.
    logging.getLogger("urllib3.connection").setLevel(logging.ERROR)
    # pika logs every step of a refused connection as an error; the probe reports the outcome itself.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
