"""Format numbers for people, the same in all rooms: durations, bytes, counts, rates. A missing value is a dash."""

import re
from collections.abc import Callable, Iterable

ABSENT = "\N{EN DASH}"

_NUMBER = re.compile(r"[-+0-9.,e]+")
_VERBS = {"is": "are", "has": "have", "was": "were", "holds": "hold", "does": "do"}
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")


def duration(seconds: float | None) -> str:
    """A duration: `0.42 ms`, `18.5 ms`, `2.31 s`, `42 s`, `7 min`, `3 h 5 min`, `2 d 4 h`."""
    if seconds is None:
        return ABSENT
    if seconds < 0.9995:
        return f"{max(seconds, 0) * 1000:.3g} ms"
    if seconds < 119.5:
        return f"{seconds:.3g} s"
    return whole_minutes(round(seconds / 60))


def whole_minutes(minutes: int) -> str:
    """A duration in its one or two largest units: `7 min`, `3 h 5 min`, `2 d 4 h`."""
    if minutes < 90:
        return f"{minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    days, rest = divmod(hours, 24)
    return f"{days} d {rest} h" if rest else f"{days} d"


def size(count: float | None) -> str:
    """Bytes in binary units: `512 B`, `1.5 GiB`."""
    if count is None:
        return ABSENT
    value = float(count)
    for unit in _SIZES[:-1]:
        if abs(value) < 1024:
            return f"{value:.3g} {unit}" if abs(value) < 1000 else f"{value:.0f} {unit}"
        value /= 1024
    return f"{number(value)} {_SIZES[-1]}"


def number(value: float | None) -> str:
    """A number without a unit, with three significant digits if it is small: `0.042`, `1.5`, `12,845`."""
    if value is None:
        return ABSENT
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"


def plural(count: float, noun: str) -> str:
    """A number and its noun, which may end with a verb: `1 message`, `12,845 other queues`, `2 queues are`."""
    if count == 1:
        return f"1 {noun}"
    *before, last = noun.split()
    if last in _VERBS and before:
        return f"{number(count)} {' '.join(before)}s {_VERBS[last]}"
    return f"{number(count)} {noun}s"


def rate(per_second: float | None) -> str:
    """Events per second: `40/s`. Low rates are shown as an interval: `one every 20 s`."""
    if per_second is None:
        return ABSENT
    if 0 < per_second < 0.8:
        return f"one every {duration(1 / per_second)}"
    return f"{number(float(f'{per_second:.3g}'))}/s"


def share(part: float | None) -> str:
    """A share, 0 to 1, in percent: `42 %`."""
    return ABSENT if part is None else f"{part * 100:.3g} %"


def join(items: Iterable[object], limit: int = 3) -> str:
    """The first `limit` items, and the number of the others: `a, b, c and 2 more`."""
    texts = [str(item) for item in items]
    more = f" and {len(texts) - limit} more" if len(texts) > limit else ""
    return ", ".join(texts[:limit]) + more


def between(low: float, high: float, text: Callable[[float], str]) -> str:
    """A range with its unit, which appears once if both ends have the same: `2 to 9 ms`, `0.5 ms to 1.5 s`."""
    first, last = text(low), text(high)
    if first == last:
        return first
    one, other = _NUMBER.match(first), _NUMBER.match(last)
    # Singular and plural are the same unit: `1 message`, `2 messages`.
    same = one and other and first[one.end() :].rstrip("s") == last[other.end() :].rstrip("s")
    return f"{one[0]} to {last}" if one and same else f"{first} to {last}"
