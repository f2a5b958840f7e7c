"""A next step as words and the command in it, so that the command alone can be copied."""

import re
import shlex
from typing import NamedTuple

_PROGRAMS = (
    "ackscope",
    "curl",
    "df",
    "journalctl",
    "kubectl",
    "nc",
    "openssl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmqadmin",
    "rabbitmqctl",
    "ss",
    "systemctl",
)
# Names are quoted wherever a step tells them: words before a command that hold a quote may be somebody's queue name,
# and what looks like a command after it may be the rest of that name.
_STEP = re.compile(rf"(?:(?P<prose>[^'\"`]*): )?(?P<command>(?:{'|'.join(_PROGRAMS)}) .+)", re.DOTALL)


class ParsedStep(NamedTuple):
    """What to do; either may be absent, never both."""

    prose: str | None
    command: str | None


def split(step: str) -> ParsedStep:
    """Part `see who holds what: rabbitmqctl list_consumers` at its colon; words alone stay words."""
    found = _STEP.fullmatch(step)
    if found is None or not _closed(found["command"]):
        return ParsedStep(step, None)
    return ParsedStep(found["prose"], found["command"])


def _closed(command: str) -> bool:
    """Whether every quote of a command is closed, as in one that can be pasted into a shell."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return True
