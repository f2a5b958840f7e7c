"""Properties of a message for which the broker refuses a publish and closes the channel (406), by the error's length.

The errors with which the broker closes a channel at a publish, in the order of its checks:

| code | text |
|---|---|
| 406 | PRECONDITION_FAILED - message size N is larger than configured max size N |
| 403 | ACCESS_REFUSED - write access to exchange 'X' in vhost 'V' refused for user 'U' |
| 404 | NOT_FOUND - no exchange 'X' in vhost 'V' |
| 403 | ACCESS_REFUSED - cannot publish to internal exchange 'X' in vhost 'V' |
| 406 | PRECONDITION_FAILED - fast reply consumer does not exist |
| 406 | PRECONDITION_FAILED - invalid expiration 'E': REASON |
| 406 | PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",TYPE} |
| 403 | ACCESS_REFUSED - write access to topic 'K' in exchange 'X' in vhost 'V' refused for user 'U' |
| 406 | PRECONDITION_FAILED - user_id property set to 'N' but authenticated user was 'U' |

"immediate" (540) ends the whole connection. A permission on an exchange refuses each message to it; a property, or a
routing key, refuses only messages that have it. So where other messages of a channel are accepted, a property is as
likely as an exchange.
Source: rabbit_channel.erl, rabbit_access_control.erl, rabbit_basic.erl and rabbit_misc.erl of 3.10.8, 4.0.5 and 4.3.5
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ackscope.findings import Fact
from diagnosis.churn_loops import text_bytes

USER_ID, EXPIRATION, ROUTES = "user_id", "expiration", "routes"

_MOST_USER = 20
"""Bytes of the longest user name that is assumed."""
_MOST_EXPIRATION = 12
"""Characters of the longest expiration that is assumed, but for times in place of durations."""
_TIMES = (12, 13, 16, 19)
"""Digits of numbers above ten years in ms, the broker's limit: a time, in ms, µs and ns since 1970."""
_TYPES = ("longstr", "table", "binary", "bool", "void", "long", "signedint", "unsignedint", "double", "timestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedProperty:
    """A property that gives an error of that length.

    Attributes:
        name: USER_ID, EXPIRATION, or ROUTES for the headers CC and BCC.
        value_bytes: of a user id its length; 0 for others.
    """

    name: str
    value_bytes: int = 0

    def facts(self) -> dict[str, Fact]:
        """Return `{"name", "value_bytes"}`."""
        return {"name": self.name, "value_bytes": self.value_bytes}


def refused_properties(error: int, user: str) -> Iterator[RefusedProperty]:
    """Yield the properties for which the text that refuses a message of this user may have so many bytes."""
    claimed = error - text_bytes(user_id_text("", user))
    # The name of the user itself is accepted; another one may be as long.
    if 0 < claimed <= _MOST_USER:
        yield RefusedProperty(name=USER_ID, value_bytes=claimed)
    if error - text_bytes("PRECONDITION_FAILED - invalid expiration '': ") in _EXPIRATIONS:
        yield RefusedProperty(name=EXPIRATION)
    if error in _ROUTES:
        yield RefusedProperty(name=ROUTES)


def user_id_text(claimed: str, user: str) -> str:
    """Return the text for a message whose user_id is not the user of its connection."""
    return f"PRECONDITION_FAILED - user_id property set to '{claimed}' but authenticated user was '{user}'"


def _expirations() -> Iterator[int]:
    """Yield the bytes of an expiration and the reason why it is none, together."""
    lengths = range(1, _MOST_EXPIRATION + 1)
    for length in lengths:
        yield length + len("no_integer")
        # "60000.0" and "5s" begin with a number.
        yield from (length + len('{leftover_string,""}') + rest for rest in range(1, length))
        if length > 1:
            yield 2 * length + len("{value_negative,}")
    yield from (2 * length + len("{value_too_large,}") for length in _TIMES)


_EXPIRATIONS = frozenset(_expirations())
_ROUTES = frozenset(
    len(f'PRECONDITION_FAILED - invalid message: {{unacceptable_type_in_header,"{header}",{kind}}}')
    for header in ("CC", "BCC")
    for kind in _TYPES
)
