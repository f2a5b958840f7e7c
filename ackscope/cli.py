"""Parts of the command line that all commands share."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import NoReturn, Protocol

import orjson

from ackscope.errors import EXIT_COULD_NOT, AckscopeError
from ackscope.object_path import Place, place


class Command(Protocol):
    """The interface of a command's module."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare options and arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Run the command and return the exit code."""
        ...


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` that reports invalid input in one line and exits with `EXIT_COULD_NOT`."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit."""
        self.exit(EXIT_COULD_NOT, f"{self.prog}: {message}; see: {self.prog} --help\n")


def program() -> str:
    """Return how a shell finds this program: its name if it is on the PATH, else the path by which it was called."""
    return "ackscope" if shutil.which("ackscope") or not sys.argv[0] else sys.argv[0]


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str) -> float:
    """Parse a duration: `30s`, `1.5m`, `200ms`, `2h`, `1d`, or a number of seconds.

    Raises:
        ValueError: the text is not a duration; the message has examples.
    """
    stripped = text.strip().lower()
    for unit in sorted(_UNITS, key=len, reverse=True):
        if stripped.endswith(unit):
            number, scale = stripped[: -len(unit)], _UNITS[unit]
            break
    else:
        number, scale = stripped, 1.0
    try:
        value = float(number) * scale
    except ValueError:
        raise ValueError(f"{text!r} is not a duration, write 30s, 5m, 1h or 200ms") from None
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text!r} is not a duration, write 30s, 5m, 1h or 200ms")
    return value


def argument(parse: Callable[[str], float]) -> Callable[[str], float]:
    """Adapt a parser that raises `ValueError` to argparse's `type=`, which then shows the text of the error."""

    def read(text: str) -> float:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def folder(text: str) -> Place:
    """A folder, or a prefix of a bucket: argparse's `type=`.

    Raises:
        argparse.ArgumentTypeError: it is an address of another kind, or a package is missing.
    """
    try:
        return place(text)
    except AckscopeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def nearest(word: str, known: list[str]) -> str:
    """`, did you mean X?` if a known word is similar, else ""."""
    close = get_close_matches(word, known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""


def print_json(document: object) -> None:
    """Print one JSON document on stdout."""
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
    sys.stdout.flush()


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent process ends (Linux).

    Call it in a child that must not outlive its parent, even if the parent is killed.
    """
    import ctypes  # noqa: PLC0415  only children pay for it

    parent = os.getppid()
    libc = ctypes.CDLL(None)
    libc.prctl(1, 15)  # PR_SET_PDEATHSIG, SIGTERM
    if os.getppid() != parent:
        raise SystemExit(EXIT_COULD_NOT)
