"""Foreign text on a terminal and in a log: names chosen by clients cannot move the cursor, recolour or hide text."""

import json
import re
from typing import Any, TextIO

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Control, direction and zero-width characters, except tab and newline."""


def printable(text: str) -> str:
    """The text with hidden characters as the escapes of JSON, so that JSON stays JSON; lines stay lines."""
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


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
