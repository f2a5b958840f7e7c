"""Which permission a client lacks, where each of its channels ends with an error and it neither publishes nor consumes.

Two numbers must agree. The length of the error text gives the length of the name, and the bytes of a cycle are those
of one request with a name as long: a declaration, or a binding. A refused declaration is not counted (those refused
with 406 and 405 are). Where only the error fits, an object is named if it is the only one. Before 4.0 the text does not
name the permission. Texts and bytes were measured on 4.3.6, on a vhost "/" and others.
Source: https://www.rabbitmq.com/docs/access-control#authorisation, https://www.rabbitmq.com/amqp-0-9-1-reference
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ackscope.findings import Fact
from diagnosis.churn_loops import ChurnLoop, text_bytes
from diagnosis.contract import View
from diagnosis.rules.clients._shared.loops import FEW_MESSAGES, MIN_PER_CYCLE
from diagnosis.rules.clients._shared.refusals import refusal

_DECLARE, _DECLARE_EXCHANGE, _BIND = 45, 46, 47
"""Bytes of a cycle without the names: channel.open (13), the request, channel.close-ok (12)."""
_PUBLISH = 72
"""Bytes of a cycle that publishes, without the names: more than those of a binding with short names."""
_ARGUMENTS = (0, 24, 25)
"""Bytes of the arguments of a queue: none, or its type (quorum and stream, classic)."""
_TYPES = (5, 6, 7)
"""Bytes of the type of an exchange: topic; direct and fanout; headers."""
_NEAR = 1.5
"""Bytes by which the mean of some cycles may differ from those of one."""
_LONGEST_NAME, _LONGEST_TEXT = 80, 255
"""Characters of a name that applications use, at most, and bytes at which the broker cuts the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedAccess:
    """What a user may not do.

    Attributes:
        access: "configure", "write" or "read".
        kind: "queue", "exchange", or "topic" for the routing key of a binding.
        names: the objects that it may be; of a topic permission the exchanges. () if none of this length is known.
        name_bytes: length of the name, or of the routing key.
        exact: whether the bytes of a cycle are those of the request as well.
    """

    access: str
    kind: str
    names: tuple[str, ...]
    name_bytes: int
    exact: bool

    def facts(self) -> dict[str, Fact]:
        """Return `{"access", "kind", "names", "name_bytes"}`."""
        return {
            "access": self.access,
            "kind": self.kind,
            "names": list(self.names),
            "name_bytes": self.name_bytes,
        }


def refused_access(view: View, closing: ChurnLoop) -> tuple[RefusedAccess, ...]:
    """Return what the user of a loop probably may not do; () if the error fits nothing, or too much."""
    if not closing.by_broker or closing.error is None or closing.error >= _LONGEST_TEXT or closing.received is None:
        return ()
    if view.version is None or view.version < (4, 0) or closing.connection.user is None:
        return ()
    if closing.alone and (closing.declares >= MIN_PER_CYCLE or closing.published >= FEW_MESSAGES):
        return ()
    found = tuple(_fitting(view, closing, closing.error, closing.received))
    exact = tuple(each for each in found if each.exact)
    if exact:
        return exact
    return found if sum(len(each.names) for each in found) == 1 else ()


def _fitting(view: View, closing: ChurnLoop, error: int, received: float) -> Iterator[RefusedAccess]:
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    queues = [each.name for each in view.all_queues if each.vhost == vhost and not each.exclusive]
    exchanges = [each.name for each in view.exchanges if each.vhost == vhost and each.name]

    def judged(access: str, kind: str, known: list[str], fixed: int, *extra: int) -> Iterator[RefusedAccess]:
        length = error - text_bytes(refusal(f"{access} ", kind, "", vhost, user))
        names = tuple(sorted({name for name in known if text_bytes(name) == length}))
        exact = any(abs(received - fixed - length - more) <= _NEAR for more in extra)
        if 0 < length <= _LONGEST_NAME and ((exact and extra) or (names and received >= fixed + length)):
            yield RefusedAccess(access=access, kind=kind, names=names, name_bytes=length, exact=exact)

    yield from judged("configure", "queue", queues, _DECLARE, *_ARGUMENTS)
    yield from judged("configure", "exchange", exchanges, _DECLARE_EXCHANGE, *_TYPES)
    for each in (*judged("write", "queue", queues, _BIND), *judged("read", "exchange", exchanges, _BIND)):
        # A binding names a queue and an exchange.
        others = exchanges if each.kind == "queue" else queues
        if any(received >= _BIND + each.name_bytes + text_bytes(other) - _NEAR for other in others):
            yield replace(each, exact=False)
    yield from _topics(view, closing, error, received, queues)


def _topics(view: View, closing: ChurnLoop, error: int, received: float, queues: list[str]) -> Iterator[RefusedAccess]:
    """Yield the topic exchanges to which the client may not bind a queue with its routing key."""
    vhost, user = closing.connection.vhost or "/", closing.connection.user or ""
    lengths = {text_bytes(name) for name in queues}
    for exchange in view.exchanges:
        if exchange.vhost != vhost or exchange.type != "topic":
            continue
        where = f"topic '' in exchange '{exchange.name}' in vhost '{vhost}'"
        text = f"ACCESS_REFUSED - read access to {where} refused for user '{user}'"
        key, name = error - text_bytes(text), text_bytes(exchange.name)
        rest = received - _BIND - name - key
        is_binding = received < _PUBLISH + name + key and any(abs(rest - length) <= _NEAR for length in lengths)
        if 0 < key <= _LONGEST_NAME and is_binding:
            yield RefusedAccess(access="read", kind="topic", names=(exchange.name,), name_bytes=key, exact=True)
