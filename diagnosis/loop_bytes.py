"""Infers what the channels of a connection do from its bytes and packets (see `diagnosis.churn_loops`).

Measured on 3.10.8 and 4.3.6 (in part on 4.0.5) with each of the loops below at five cycles a second:

- The broker answers an open channel with 16 bytes and the client's own close with 12: two packets and 28 bytes per
  cycle, plus its other answers. If the broker closes the channel, it sends 19 bytes and the error's text:
  two packets, and `16 + 19 + length of the text`. This gives the exact length of the text in bytes: 43 for
  "NOT_FOUND - no exchange 'nope' in vhost '/'", 45 for "PRECONDITION_FAILED - unknown delivery tag 99", and so on.
  The other answer in a cycle is mostly to confirm.select or basic.qos: one packet of 12 bytes.
- The bytes from the client include the body of a publish: more than 16 MiB (128 MiB before 4.0) if it is too large.

| loop | packets | bytes sent | bytes received | `queue_declared` |
|---|---|---|---|---|
| publish to a missing exchange (404), body of 100 bytes | 2 | 78 | 203 | 0 |
| acknowledgement of an unknown tag (406) | 2 | 80 | 72 | 0 |
| declare with other arguments (406) | 2 | 188 | 70 | 1 |
| publish without permission (403) | 2 | 119 (3.10), 125 (4.3) | 204 | 0 |
| consumer beside an exclusive one (403) | 2 | 98 | 92 | 0 |
| declare of another's exclusive queue (405) | 2 | 261 | 55 | 1 |
| message too large (406), with confirms | 3 | 134 | 17,827,000 | 0 |
| consume, and acknowledge twice (406) | 8 | 1000 | 157 | 0 |
| a channel for each publish, no fault of the broker's | 2 | 28 | 203 | 0 |
| a channel for each `basic.get` that finds nothing | 3 | 41 | 69 | 0 |

A client that closes its channel itself may have as many bytes. A queue of its own for replies costs 51 bytes for
queue.declare-ok with the generated name, as many for consume-ok with a tag of 38 bytes, and one more for basic.cancel
when the queue goes (4.3.6: 6 packets and 203 bytes per cycle, and 322 from the client). So three packets or more show
an error only if no name and no message can be that long. With two there is room for channel.open-ok and the close only.
"""

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
_GENERATED = 51
"""Bytes of queue.declare-ok with a name that the broker generated, the longest answer to a request without a name."""
_NAMED = 21
"""Bytes of queue.declare-ok without the name, the longest of the answers that repeat a name of the client."""
_DECLARED, _CONSUMED = 276, 58
"""Most bytes of queue.declare-ok, and of consume-ok and cancel-ok with a tag of 45 bytes (libraries: 31 to 38)."""
_CLIENT_CLEAN, _REQUEST = 32, 20
"""Fewest bytes that a client sends to open a channel and close it itself, and for a request that names a queue."""
_CLEAN = OPEN_OK + CLOSE_OK
_HEARTBEAT = 8
_HEARTBEAT_SECONDS = 10.0
"""Seconds between heartbeats of a connection that does not say what it agreed on."""
_MOST_PACKETS = 4
_AMISS = 0.8
"""Tolerance in packets per cycle: the cluster's count of cycles is read at another moment."""

_COUNTED = 0.95
"""Share of the cluster's cycles that is certain."""


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


def heartbeats(connection: Connection, seconds: float) -> int:
    """Return the heartbeats that the broker may have sent: one in half the agreed time."""
    if connection.heartbeat is None:
        return round(seconds / _HEARTBEAT_SECONDS)
    return int(2 * seconds / connection.heartbeat) if connection.heartbeat else 0


def active(history: Series[Connection]) -> Series[Connection]:
    """Return the readings without the quiet time before the first packets; a heartbeat counts as quiet."""
    while len(history) > 2 and increase(history[0].value, history[1].value)[0] <= 1:
        history = history[1:]
    return history


def is_over(history: Series[Connection]) -> bool:
    """Return whether a connection was quiet in the latter half of its history, as after a burst of declarations.

    One packet is a heartbeat.
    """
    busy = [newer.at for older, newer in pairwise(history) if increase(older.value, newer.value)[0] > 1]
    latest = busy[-1] if busy else history[0].at
    return 2 * history[-1].at.since(latest) >= history[-1].at.since(history[0].at)


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
        return _of(each, *_whole_cycles(history, each, error), error=error, by_broker=True)
    if likely * sent / packets < OPEN_OK + CLOSE + SHORTEST_TEXT and (alone or abs(2 * sent / packets - _CLEAN) < 1.0):
        return _of(likely, packets, sent, received, error=None, by_broker=False)
    if alone:
        return _of(likely, packets, sent, received, error=None, by_broker=None)
    return Cycle()


def cycle_of_error(history: Series[Connection], cycles: float, most: float) -> Cycle | None:
    """Return the cycle of fewer than `most` packets that the broker ends with an error, if the bytes fit one.

    Args:
        history: readings of the connection.
        cycles: the largest number of cycles in that time.
        most: packets per cycle.
    """
    packets = increase(history[0].value, history[-1].value)[0]
    each, error = _text(history, max(2.0, packets / max(cycles, 1.0)), most - 1.0)
    return None if error is None else _of(each, *_whole_cycles(history, each, error), error=error, by_broker=True)


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


def fits_own_close(turn: Cycle, *, declares: bool, content: bool) -> bool:
    """Return whether a client that closes its channel itself could have a cycle of these bytes.

    The broker then sends channel.close-ok, and its other answers have text of their own: the name of a queue, or a
    consumer tag. Such a name is either generated by the broker or among the bytes of the client.

    Args:
        turn: the cycle, with a number of packets that is certain.
        declares: whether cycles may declare queues.
        content: whether cycles may get messages; these are of any length.
    """
    if turn.packets is None or turn.sent is None or turn.received is None:
        return True
    answers = round(turn.packets) - 2
    if answers <= 0 or content:
        return answers > 0
    named = max(0.0, turn.received - _CLIENT_CLEAN - answers * _REQUEST)
    # Each name of the client is in one answer, which then has no generated name.
    longest = answers * _GENERATED + max(0.0, _NAMED + named - _GENERATED)
    most = min(answers * (_DECLARED if declares else _CONSUMED), longest)
    return turn.sent - _CLEAN < most + 1.0


def certain_packets(packets: float, each: float, cycles: float, others: float) -> bool:
    """Return whether the cluster's count of cycles leaves no room for cycles of more packets.

    Several short cycles look like one of three times as many packets: open-ok, the answers, and close-ok.

    Args:
        packets: packets of the loop in some time.
        each: packets per cycle, as inferred from its bytes.
        cycles: cycles of the whole cluster in that time.
        others: cycles of the other loops in that time.
    """
    return packets / max(1.0, _COUNTED * cycles - others) < each + _AMISS


def _of(each: float, packets: int, sent: int, received: int, *, error: int | None, by_broker: bool | None) -> Cycle:
    cycles = packets / each
    return Cycle(error=error, by_broker=by_broker, packets=each, sent=sent / cycles, received=received / cycles)


def _whole_cycles(history: Series[Connection], each: int, error: int) -> tuple[int, int, int]:
    """Return packets sent, bytes sent and bytes received between the two readings with most whole cycles in between.

    The client sends most bytes of a cycle in one part of it: half a cycle more or less of a dozen is 3 % of them.
    Without the bytes that each packet would have as a heartbeat, heartbeats count as nothing.
    """
    turn = OPEN_OK + CLOSE + error + (each - 2) * SIMPLE_OK - each * _HEARTBEAT
    earliest: dict[int, Connection] = {}
    best = (0, 0, 0)
    for seen in history:
        place = (seen.value.send_oct or 0) - (seen.value.send_cnt or 0) * _HEARTBEAT
        packets, sent, received = increase(earliest.setdefault(place % turn, seen.value), seen.value)
        best = max(best, ((sent - packets * _HEARTBEAT) // turn * each, sent, received))
    return best if best[0] > 0 else increase(history[0].value, history[-1].value)


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
