"""Damages recorded input: JSON by its structure, text and bytes by their form. Equal random numbers, equal damage.

Why no library does it: Atheris and HypoFuzz have builds for this Python, and were looked at, not measured. Atheris
mutates bytes, of which most damage ends in the JSON parser, so its structured form needs a mutator like this one
anyway; it takes over its process, and its cases are files. HypoFuzz keeps what it found in a database, where a case has
no number. Hypothesis stays in the unit tests, where small inputs are shrunk.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

_LONG = "q" * 70_000
_DIGITS = "9" * 5000

WORDS = (
    *("", " ", "undefined", "unknown", "none", "null", "0", "12", "-1", "1e9", "/", "//", "(other)", "rabbit@", "@"),
    *("running", "flow", "blocked", "blocking", "idle", "down", "crashed", "stopped", "minority", "terminated"),
    *("classic", "quorum", "stream", "direct", "fanout", "AMQP 1-0", "4.3.6", "3.8", "99.99.99", "4.x", "²"),
    *("a\nb", "a\rb", "a\tb", "a\x00b", "\x1b[31mred", "\x7f", "\x85", "\u2028", "\u202egnirts", "e\u0301" * 200),
    *(
        "<script>alert(1)</script>",
        "{{1}}",
        "{name}",
        "%s%n",
        "$(id)",
        "`id`",
        "'; --",
        'quote"\\',
        "../../x",
        "[x](y)",
    ),
    *("2026-02-30T25:61:61", "0001-01-01T00:00:00+14:00", "9999-12-31 23:59:59", "2026-11-21T08:12:24.339+00:00"),
    *("amqp://u:hush@h:5672", "127.0.0.1:1 -> 127.0.0.1:2", "\U0001f407" * 90, "\ufeff", "\ufffd", "x" * 300),
)
"""Texts that a broker, or somebody who names a queue, may send."""

NUMBERS = (
    *(0, 1, -1, 2, 7, 255, 65536, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63)),
    *(0.0, -0.0, 0.5, -0.5, 1e-300, 1e18, 1e19, 1.7e308, 253402300800, -62135596801, 1e12),
)

_RAW = (
    *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1E-400", "-0", "01", "1.", _DIGITS, "0." + _DIGITS),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\x"', '"\x01"', "'x'", "nul", "[1,]", '{"a":1,}', "{1:2}", ""),
    *('{"a":1,"a":2}', '{"name":"a","name":[]}', '{"":0}', "[" * 900 + "]" * 900, "[" * 3000 + "]" * 3000),
    *('{"a":' * 500 + "1" + "}" * 500, "[" + "0," * 2000 + "0]", "/* */ 1", "1 2", "]", "}"),
)
"""What `json.dumps` would not write: numbers and texts beyond JSON, keys that are there twice, many levels."""

_MARK = "@raw@"


Change = Callable[["Mutator", Any, Any], None]
"""Changes the place `key` of a list or an object."""


class Mutator:
    """Damages input with the random numbers of one case.

    Args:
        rng: decides everything.
    """

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self._raw: list[str] = []

    def document(self, value: Any, times: int | None = None) -> bytes:
        """Return JSON with a few changes of its structure. `value` is changed in place.

        Args:
            value: a parsed document.
            times: number of changes; by default few, sometimes many.
        """
        return self.text_of(self.structure(value, times)).encode("utf-8", "surrogatepass")

    def structure(self, value: Any, times: int | None = None) -> Any:
        """Change a parsed document in place, and return it; `text_of` writes it."""
        count = self.rng.choice((1, 1, 1, 2, 2, 3, 5, 20)) if times is None else times
        holder = [value]
        for _ in range(count):
            self._change_somewhere(holder)
        return holder[0] if holder else None

    def text_of(self, value: Any) -> str:
        """Write a document that `structure` returned as JSON."""
        pieces = json.dumps(value, ensure_ascii=self.rng.random() < 0.5).split(f'"{_MARK}')
        written = pieces[0]
        for piece in pieces[1:]:
            number, _, rest = piece.partition('"')
            # A mark that is a key stays text, because raw bytes as a key are rarely valid JSON.
            # A later mutation may have damaged the number of a mark.
            known = number.isdecimal() and int(number) < len(self._raw) and not rest.startswith(":")
            written += (self._raw[int(number)] if known else f'"{_MARK}{number}"') + rest
        self._raw = []
        return written

    def value(self) -> Any:
        """Return a value that does not belong there."""
        kind = self.rng.randrange(12)
        if kind < 4:
            return self.rng.choice(NUMBERS)
        if kind < 7:
            return self.word()
        if kind == 7 and self.rng.random() < 0.5:
            self._raw.append(self.rng.choice(_RAW))
            return f"{_MARK}{len(self._raw) - 1}"
        inner: Any = self.rng.choice(
            (None, None, True, False, [], {}, [0], [None], {"rate": 7}, [[]], {"a": {"b": []}})
        )
        return json.loads(json.dumps(inner))

    def word(self) -> str:
        """Return a text of the kind that breaks things; rarely a very long one."""
        return _LONG if self.rng.random() < 0.01 else self.rng.choice(WORDS)

    def _change_somewhere(self, holder: list[Any]) -> None:
        """Go down from the root at random, and change one place."""
        parent: Any = holder
        key: Any = 0
        while parent[key] and isinstance(parent[key], dict | list) and self.rng.random() < 0.9:
            parent = parent[key]
            key = self.rng.choice(list(parent)) if isinstance(parent, dict) else self.rng.randrange(len(parent))
        inner = parent[key]
        if isinstance(inner, bool) or not isinstance(inner, int | float) or self.rng.random() < 0.4:
            self.rng.choice(_CHANGES if parent is not holder else _AT_ROOT)(self, parent, key)
        else:
            parent[key] = self.rng.choice(_SUMS)(inner, self.rng)

    def text(self, text: str) -> str:
        """Return a text with a word put in, a piece taken out, or in capitals."""
        start = self.rng.randrange(len(text) + 1)
        end = min(len(text), start + self.rng.choice((0, 0, 1, 2, 9)))
        kind = self.rng.randrange(4)
        if kind == 0:
            return text[:start] + self.word() + text[end:]
        if kind == 1:
            return text[:start] + text[end:]
        return (
            text.upper() if kind == 2 else text[:start] + chr(self.rng.choice((0, 10, 27, 34, 92, 0x301))) + text[end:]
        )

    def bytes(self, content: bytes) -> bytes:
        """Return bytes with bits flipped, pieces missing, twice or foreign, cut off, or in another charset."""
        changed = bytearray(content)
        for _ in range(self.rng.choice((1, 1, 2, 5, 30))):
            start = self.rng.randrange(len(changed) + 1)
            end = min(len(changed), start + self.rng.choice((1, 1, 2, 8, 64, 1024)))
            match self.rng.randrange(8):
                case 0 | 1 | 2 if start < len(changed):
                    changed[start] ^= 1 << self.rng.randrange(8)
                case 3:
                    del changed[start:end]
                case 4:
                    changed[start:start] = changed[start:end]
                case 5:
                    changed[start:end] = self.rng.randbytes(self.rng.choice((1, 4, 40)))
                case 6:
                    changed[start:end] = bytes([self.rng.choice((0, 0x7F, 0x80, 0xFF))]) * (end - start)
                case 7 if self.rng.random() < 0.3:
                    del changed[start:]
        if self.rng.random() < 0.05:
            text = bytes(changed).decode("latin-1")
            return text.encode(self.rng.choice(("utf-16", "utf-32", "utf-8", "utf-8-sig")))
        return bytes(changed)


def _other_sign(value: float, _: Random) -> float:
    return -value


def _much_more(value: Any, rng: Random) -> Any:
    return value * rng.choice((2, 1000, 2**20, 2**40, 10.0**300 if isinstance(value, float) else 10**30))


def _a_little(value: float, rng: Random) -> float:
    return value + rng.choice((-1, 1, 1, 100, 0.5))


def _nothing(_: float, rng: Random) -> float:
    return rng.choice((0, 0, 0.0, 1))


def _any_number(_: float, rng: Random) -> float:
    return rng.choice(NUMBERS)


_SUMS = (_other_sign, _much_more, _a_little, _a_little, _nothing, _any_number)


def _replace(mutator: Mutator, parent: Any, key: Any) -> None:
    parent[key] = mutator.value()


def _drop(_: Mutator, parent: Any, key: Any) -> None:
    del parent[key]


def _rename(mutator: Mutator, parent: Any, key: Any) -> None:
    if isinstance(parent, dict):
        parent[mutator.word()] = parent.pop(key)
    else:
        mutator.rng.shuffle(parent)


def _add(mutator: Mutator, parent: Any, key: Any) -> None:
    if isinstance(parent, dict):
        parent[mutator.rng.choice((mutator.word(), "name", "vhost", "items", "error", "message_stats"))] = (
            mutator.value()
        )
    else:
        parent.insert(key, mutator.value())


def _repeat(mutator: Mutator, parent: Any, key: Any) -> None:
    """The same object again, which a real list never has; or the same value under another key."""
    if isinstance(parent, dict):
        parent[mutator.rng.choice(list(parent))] = parent[key]
    else:
        parent[key:key] = [json.loads(json.dumps(parent[key]))] * mutator.rng.choice((1, 1, 2, 30))


def _wrap(mutator: Mutator, parent: Any, key: Any) -> None:
    inner = parent[key]
    parent[key] = mutator.rng.choice(([inner], {"value": inner}, str(inner)[:500], [inner, inner]))


def _unwrap(mutator: Mutator, parent: Any, key: Any) -> None:
    inner = parent[key]
    if isinstance(inner, dict):
        parent[key] = list(inner.values())
    elif isinstance(inner, list):
        parent[key] = {str(number): each for number, each in enumerate(inner)}
    else:
        parent[key] = mutator.text(str(inner))


_AT_ROOT: tuple[Change, ...] = (_replace, _wrap, _unwrap)
_CHANGES: tuple[Change, ...] = (_replace, _replace, _drop, _rename, _add, _repeat, _wrap, _unwrap)
