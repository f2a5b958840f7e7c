"""Foreign text on a terminal and in a log: names chosen by clients cannot move the cursor, recolour or hide text."""

import json
import unicodedata
from typing import Any, TextIO

_HIDDEN = {"Cc", "Cf", "Zl", "Zp"}
"""Unicode categories of control, direction and zero-width characters."""


def is_hidden(character: str) -> bool:
    """Whether a character does something instead of being shown."""
    return unicodedata.category(character) in _HIDDEN


def printable(text: str) -> str:
    """The text with hidden characters as the escapes of JSON, so that JSON stays JSON; lines and tabs stay."""
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    return "".join(json.dumps(it)[1:-1] if it != "\t" and is_hidden(it) else it for it in line)


class PrintableStream:
    """A text stream that makes everything printable before it is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the printable form; returns the number of characters given."""
        self._stream.write(printable(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the stream."""
        return getattr(self._stream, name)
