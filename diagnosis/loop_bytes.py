"""Infers what the channels of a connection do from its bytes and packets (see `diagnosis.churn_loops`)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from ackscope.snapshot import Connection
from diagnosis.window import Series, Timestamped

OPEN_OK, CLOSE_OK, CLOSE, SIMPLE_OK, CONFIRM = 16, 12, 19, 12, 21
"""Bytes of frames that the broker sends (AMQP 0-9-1): channel.open-ok, channel.close-ok, channel.close without its
text, answers without arguments such as confirm.select-ok, and basic.ack."""
SHORTEST_TEXT = 30
"""Minimum length of an error text in bytes; "NOT_FOUND - no queue '' in vhost '/'" has 36."""
_LONGEST_TEXT = 255
_CLEAN = OPEN_OK + CLOSE_OK
_HEARTBEAT = 8
_MOST_PACKETS = 4
_AMISS = 0.8
"""Tolerance in packets per cycle: the cluster's count of cycles is read at another moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle of a loop, as inferred from bytes and packets.

    Attributes:
        error: length in bytes of the text with which the broker closes the channel; None if unknown.
        by_broker: whether the broker closes the channel; None if unknown.
        packets, sent, received: packets sent, bytes sent and bytes received per cycle; None if unknown.
    """

    error: int | None = None
    by_broker: bool | None = None
    packets: float | None = None
    sent: float | None = None
    received: float | None = None


def increase(older: Connection, newer: Connection) -> tuple[int, int, int]:
    """Return packets sent, bytes sent and bytes received between two readings."""
    return (
        (newer.send_cnt or 0) - (older.send_cnt or 0),
        (newer.send_oct or 0) - (older.send_oct or 0),
        (newer.recv_oct or 0) - (older.recv_oct or 0),
    )


def active(history: Series[Connection]) -> Series[Connection]:
    """Return the readings without the quiet time before the first packets; a heartbeat counts as quiet."""
    while len(history) > 2 and increase(history[0].value, history[1].value)[0] <= 1:
        history = history[1:]
    return history


def cycle(history: Series[Connection], cycles: float, *, alone: bool) -> Cycle:
    """Return one cycle of a loop on a connection that does nothing else.

    Args:
        history: readings of the connection.
        cycles: number of cycles in that time, by the cluster's count.
        alone: True if no other connection loops. Otherwise `cycles` is only a share by packets, which does not show
            who closes the channels.
    """
    packets, sent, received = increase(history[0].value, history[-1].value)
    if packets <= 0:
        return Cycle()
    # A loop has at least two packets per cycle.
    likely = min(_MOST_PACKETS * 4.0, max(2.0, packets / max(cycles, 1.0)))
    each, error = _text(history, likely if alone else 2.0, likely)
    if error is not None:
        return _of(each, packets, sent, received, error=error, by_broker=True)
    if likely * sent / packets < OPEN_OK + CLOSE + SHORTEST_TEXT and (alone or abs(2 * sent / packets - _CLEAN) < 1.0):
        return _of(likely, packets, sent, received, error=None, by_broker=False)
    if alone:
        return _of(likely, packets, sent, received, error=None, by_broker=None)
    return Cycle()


def text_beside_confirms(history: Series[Connection], cycles: float) -> int | None:
    """Return the length of the error text if all other packets are confirms; None if the bytes do not show it.

    A cycle is channel.open-ok, confirm.select-ok, any number of confirms, and channel.close with the text. Without the
    bytes that as many confirms have, each cycle leaves the same number. Without an error it would be negative.

    Args:
        history: readings of the connection.
        cycles: number of cycles in that time, by the cluster's count.
    """
    found: Counter[int] = Counter()
    steps, total = _steps(history), increase(history[0].value, history[-1].value)[0]
    for packets, sent in steps:
        rest, likely = sent - packets * CONFIRM, round(cycles * packets / total)
        lengths = {
            rest // turns + 3 * CONFIRM - OPEN_OK - SIMPLE_OK - CLOSE
            for turns in range(max(1, likely - 1), likely + 2)
            if rest % turns == 0
        }
        found.update(length for length in lengths if SHORTEST_TEXT <= length <= _LONGEST_TEXT)
    best = max(found, key=lambda length: (found[length], length), default=None)
    return best if best is not None and 2 * found[best] > len(steps) else None


def _of(each: float, packets: int, sent: int, received: int, *, error: int | None, by_broker: bool | None) -> Cycle:
    cycles = packets / each
    return Cycle(error=error, by_broker=by_broker, packets=each, sent=sent / cycles, received=received / cycles)


def _text(history: Series[Connection], least: float, most: float) -> tuple[int, int | None]:
    """Return packets per cycle and the length of the error text: the most frequent pair that fits the bytes.

    All errors of one loop have the same length. A reading may fall in the middle of a cycle, and a heartbeat may add a
    packet. A length can also fit by chance, so more than half of the steps must agree. Two cycles can look like one
    with twice as many packets.
    """
    found: Counter[tuple[int, int]] = Counter()
    steps = _steps(history)
    for packets, sent in steps:
        for each in range(2, _MOST_PACKETS + 1):
            found.update({(each, length) for length in _lengths(packets, sent, each)})
    fitting = [known for known in found if least - _AMISS < known[0] < most + _AMISS]
    if not fitting:
        return 2, None
    best = min(fitting, key=lambda known: (-found[known], abs(known[0] - least), known))
    return best if 2 * found[best] > len(steps) else (2, None)


def _lengths(packets: int, sent: int, each: int) -> Iterator[int]:
    """Yield the text lengths that fit cycles of `each` packets.

    A reading may start anywhere in a cycle, and one packet may be a heartbeat.

    A cycle is channel.open-ok, answers without arguments, and channel.close with the text.
    """
    for beats in (0, 1):
        whole, rest = divmod(packets - beats, each)
        for begin in range(each):
            extra = {(begin + place) % each for place in range(rest)}
            opens, closes = whole + (0 in extra), whole + (each - 1 in extra)
            simple = packets - beats - opens - closes
            texts = sent - beats * _HEARTBEAT - opens * OPEN_OK - simple * SIMPLE_OK - closes * CLOSE
            if closes > 0 and texts % closes == 0 and SHORTEST_TEXT <= texts // closes <= _LONGEST_TEXT:
                yield texts // closes


def _steps(history: Series[Connection]) -> list[tuple[int, int]]:
    """Return packets and bytes sent between consecutive readings and over all; steps with one packet are left out."""
    pairs: list[tuple[Timestamped[Connection], Timestamped[Connection]]] = [
        *pairwise(history),
        (history[0], history[-1]),
    ]
    gains = (increase(older.value, newer.value) for older, newer in pairs)
    return [(packets, sent) for packets, sent, _ in gains if packets > 1]
