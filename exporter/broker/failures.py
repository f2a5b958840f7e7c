"""What went wrong between us and the management API, each in one line: where, what, what to do.

The lines name host, port and path, and the user; never a password.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator, Mapping

import orjson
import requests
import urllib3

from ackscope.address import Address
from ackscope.errors import BadAnswer, BrokerError, Refused, Unreachable
from ackscope.log import redact

_NODE = "the node"


class ForAdministrators(Refused):
    """The broker shows this endpoint to administrators only (`user-limits` of 4.3, `feature-flags` of 3.10)."""


class NoStatistics(BadAnswer):
    """The broker collects no statistics, and this endpoint is made of them."""


def explain_status(
    address: Address, path: str, status: int, headers: Mapping[str, str], body: bytes | bytearray, user: str | None
) -> BrokerError:
    """The error that a status other than 200 stands for; `user` is None where a token was sent."""
    who = "of this token" if user is None else repr(user)
    place = f"{address.where}{address.path}{path}"
    reason = _reason(body)
    if status == 401 and "administrator" in reason.lower():
        return ForAdministrators(
            f"{place}: 401 this version shows it to administrators only; give user {who} "
            "the tag `administrator` to see it, or go on without"
        )
    if status == 401 and "not monitor" in reason.lower():
        return Refused(
            f"{place}: 401 user {who} lacks the tag `monitoring`, and sees its own only; "
            f"rabbitmqctl set_user_tags {user or 'USER'} monitoring"
        )
    if status == 401:
        return Refused(f"{place}: 401 {_unauthorised(user, reason)}")
    if status == 403:
        return Refused(
            f"{place}: 403 refused to user {who}{_said(reason)}; "
            "give it the `monitoring` tag, or see what a proxy in between allows"
        )
    if 300 <= status < 400:
        target = redact(headers.get("location", "nowhere"))
        return BadAnswer(f"{place}: {status} redirects to {target}; give that address, redirects are not followed")
    if status == 404:
        return BadAnswer(
            f"{place}: 404, no management API here; is the plugin on (`rabbitmq-plugins enable rabbitmq_management`), "
            "and is the path prefix of the address right?"
        )
    if status == 400 and "stat" in reason.lower() and "disabled" in reason.lower():
        return NoStatistics(
            f"{place}: 400, this broker collects no statistics (`management.disable_stats` or "
            "`management_agent.disable_metrics_collector`); turn them on to see this"
        )
    if status == 503:
        return Unreachable(f"{place}: 503 not available{_said(reason)}; the node or a proxy is not ready, try later")
    if status >= 500:
        return BadAnswer(f"{place}: {status} from the server{_said(reason)}; see the broker's log of this moment")
    return BadAnswer(f"{place}: {status}{_said(reason)}; expected 200")


def not_json(address: Address, path: str, content_type: str, body: bytes | bytearray) -> BadAnswer:
    """The error for an answer that should have been JSON."""
    place = f"{address.where}{address.path}{path}"
    if "html" in content_type.lower() or body.lstrip()[:1] == b"<":
        return BadAnswer(f"{place}: a web page instead of JSON; is this the management API, or a proxy's login page?")
    return BadAnswer(f"{place}: not JSON ({len(body)} bytes), cut short or not the management API; try again")


def explain_transport(
    address: Address, path: str, error: Exception, timeout: float, server: str = _NODE
) -> BrokerError:
    """The error that an exception of requests stands for: found by its cause, not by its text."""
    place = f"{address.where}{address.path}{path}"
    causes = list(_chain(error))

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if has(ssl.SSLCertVerificationError):
        why = next(cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)).verify_message
        return Unreachable(f"{place}: certificate not trusted ({why}); give its authority with ca_file")
    if has(ssl.SSLError) and any(word in _tls_reason(causes) for word in _CERTIFICATE_WANTED):
        return Unreachable(
            f"{place}: {server} wants a certificate of ours, or does not trust the one it got "
            f"({_tls_reason(causes).lower().replace('_', ' ')}); give one that it trusts with cert_file and key_file"
        )
    if has(ssl.SSLError) and not has(ssl.SSLEOFError):
        return Unreachable(f"{place}: no TLS spoken here; write http:// or give the TLS port (15671)")
    if has(socket.gaierror):
        return Unreachable(f"{place}: host name unknown; check the spelling and the resolver")
    if has(ConnectionRefusedError):
        if server != _NODE:
            return Unreachable(f"{place}: connection refused; is {server} up, and its address right?")
        return Unreachable(
            f"{place}: connection refused; is the node up, the port right (15672), "
            "and the plugin on (`rabbitmq-plugins enable rabbitmq_management`)?"
        )
    if has(TimeoutError):
        return Unreachable(f"{place}: no full answer within {timeout:g} s; {server} hangs, or is slow: raise timeout")
    if has(urllib3.exceptions.DecodeError):
        return BadAnswer(f"{place}: the answer is packed, and cannot be unpacked; a proxy in between?")
    if has(http.client.IncompleteRead, urllib3.exceptions.InvalidChunkLength, requests.exceptions.ChunkedEncodingError):
        return BadAnswer(f"{place}: the answer broke off; the node or a proxy closed the connection, try again")
    if has(http.client.BadStatusLine) and not has(http.client.RemoteDisconnected):
        return BadAnswer(f"{place}: not HTTP; is this an AMQP port (management: 15672), or a TLS port (https://)?")
    if has(ssl.SSLEOFError) or (has(ConnectionError) and address.tls):
        # The alert that tells of a certificate may be lost when the server closes at once (TLS 1.3).
        return Unreachable(
            f"{place}: connection closed without an answer; {server} is going down, or wants a certificate of ours "
            "that it trusts (cert_file and key_file)"
        )
    if has(ConnectionError):
        return Unreachable(
            f"{place}: connection closed without an answer; a TLS port (https://), or a node going down?"
        )
    return Unreachable(f"{place}: no connection ({_innermost(causes)}); check address and network")


def _unauthorised(username: str | None, reason: str) -> str:
    """In plain words what RabbitMQ's 401 says (`rabbit_mgmt_util:is_authorized`)."""
    if username is None:
        return (
            f"the token is refused{_said(reason)}; has it ended, and does it hold the broker as audience "
            "and a scope such as rabbitmq.tag:monitoring?"
        )
    if "management user" in reason.lower():
        return (
            f"user {username!r} may not use the management API; "
            f"give it the tag: rabbitmqctl set_user_tags {username} monitoring"
        )
    if "localhost" in reason.lower():
        return f"user {username!r} may only log in from the broker's own host; make a user with the tag `monitoring`"
    return f"wrong user or password (user {username!r}); check username and password"


def _reason(body: bytes | bytearray) -> str:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    reason = document.get("reason") if isinstance(document, dict) else None
    return reason[:200] if isinstance(reason, str) else ""


def _said(reason: str) -> str:
    return f" ({reason})" if reason else ""


_CERTIFICATE_WANTED = (
    "CERTIFICATE_REQUIRED",
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "HANDSHAKE_FAILURE",
)
"""In OpenSSL's word for the alert that a server sends which does not let us in without another certificate."""


def _tls_reason(causes: list[BaseException]) -> str:
    reasons = (cause.reason for cause in causes if isinstance(cause, ssl.SSLError) and cause.reason)
    return next(reasons, "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and all that it was made of: causes, contexts, wrapped reasons and arguments."""
    seen: set[int] = set()
    todo: list[object] = [error]
    while todo:
        item = todo.pop()
        if not isinstance(item, BaseException) or id(item) in seen:
            continue
        seen.add(id(item))
        yield item
        todo += [item.__cause__, item.__context__, getattr(item, "reason", None), *item.args]


def _innermost(causes: list[BaseException]) -> str:
    texts = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    return texts[-1] if texts else type(causes[0]).__name__
