"""One-line errors of the management API: place, problem and advice.

They name the host, port, path and user, but never a password.
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
from ackscope.failures import FailurePhrase
from ackscope.log import redact

_NODE = "the node"

METRICS_ENDPOINT = "the Prometheus endpoint"
"""The server of `map_transport_error` for the plugin rabbitmq_prometheus."""


class AdministratorsOnly(Refused):
    """An endpoint for administrators only (`user-limits` of 4.3, `feature-flags` of 3.10)."""


class NoStatistics(BadAnswer):
    """An endpoint that needs statistics, on a broker that collects none."""


def map_status_error(
    address: Address, path: str, status: int, headers: Mapping[str, str], body: bytes | bytearray, user: str | None
) -> BrokerError:
    """Return the error for a status other than 200; `user` is None if a token was sent."""
    who = "of this token" if user is None else repr(user)
    place = f"{address.where}{address.path}{path}"
    reason = redact(_reason(body))
    if status == 401 and "administrator" in reason.lower():
        return AdministratorsOnly(
            f"{place}: 401 this version shows it to administrators only; give user {who} "
            "the tag `administrator` to see it, or ignore this"
        )
    if status == 401 and "not monitor" in reason.lower():
        return Refused(
            f"{place}: 401 user {who} lacks the tag `monitoring` and sees only its own objects; "
            f"rabbitmqctl set_user_tags {user or 'USER'} monitoring"
        )
    if status == 401:
        return Refused(f"{place}: 401 {_unauthorised(user, reason)}")
    if status == 403:
        return Refused(
            f"{place}: 403 access refused to user {who}{_in_brackets(reason)}; "
            "give it the tag `monitoring`, or check what a proxy in between allows"
        )
    if 300 <= status < 400:
        target = redact(headers.get("location", "nowhere"))
        return BadAnswer(f"{place}: {status} redirects to {target}; use that address, redirects are not followed")
    if status == 404:
        return BadAnswer(
            f"{place}: 404, no management API here; check that the plugin is enabled "
            "(`rabbitmq-plugins enable rabbitmq_management`) and that the path prefix of the address is right"
        )
    if status == 400 and "stat" in reason.lower() and "disabled" in reason.lower():
        return NoStatistics(
            f"{place}: 400, this broker collects no statistics (`management.disable_stats` or "
            "`management_agent.disable_metrics_collector`); enable them to see this"
        )
    if status == 503:
        return Unreachable(
            f"{place}: 503 not available{_in_brackets(reason)}; the node or a proxy is not ready, try later"
        )
    if status >= 500:
        return BadAnswer(f"{place}: {status} from the server{_in_brackets(reason)}; see the broker's log at this time")
    return BadAnswer(f"{place}: {status}{_in_brackets(reason)}; expected 200")


def map_metrics_status_error(address: Address, path: str, status: int, user: str | None) -> BrokerError:
    """Return the error for a status other than 200 of a Prometheus endpoint; `user` is None if no password was sent."""
    place = f"{address.where}{address.path}{path}"
    if status in {401, 403}:
        who = "no user was given" if user is None else f"user {user!r} is refused"
        return Refused(f"{place}: {status}, {who}; set prometheus.username and prometheus.password_file")
    if status == 404:
        return BadAnswer(
            f"{place}: 404, no metrics of RabbitMQ here; check the address, and that the plugin is enabled "
            "(`rabbitmq-plugins enable rabbitmq_prometheus`)"
        )
    if status in {503, 504}:
        return Unreachable(f"{place}: {status}, not available; the node or a proxy is not ready, try later")
    return BadAnswer(f"{place}: {status}; expected 200")


def not_metrics_error(address: Address, path: str) -> BadAnswer:
    """Return the error for an answer that should have been the metrics of a node."""
    return BadAnswer(
        f"{address.where}{address.path}{path}: not the metrics of a RabbitMQ node; give the address of the plugin "
        "rabbitmq_prometheus (port 15692)"
    )


def not_json_error(address: Address, path: str, content_type: str, body: bytes | bytearray) -> BadAnswer:
    """Return the error for an answer that should have been JSON."""
    place = f"{address.where}{address.path}{path}"
    if "html" in content_type.lower() or body.lstrip()[:1] == b"<":
        return BadAnswer(f"{place}: a web page instead of JSON; is this the management API, or a proxy's login page?")
    return BadAnswer(f"{place}: not JSON ({len(body)} bytes), truncated or not the management API; try again")


def map_transport_error(
    address: Address, path: str, error: Exception, timeout: float, server: str = _NODE
) -> BrokerError:
    """Return the error for an exception of requests, classified by its causes and not by its text."""
    place = f"{address.where}{address.path}{path}"
    causes = list(_chain(error))

    def has(*kinds: type[BaseException]) -> bool:
        return any(isinstance(cause, kinds) for cause in causes)

    if has(ssl.SSLCertVerificationError):
        why = next(cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)).verify_message
        return Unreachable(f"{place}: certificate not trusted ({why}); set ca_file to the certificate of its authority")
    if has(ssl.SSLError) and any(alert in _tls_reason(causes) for alert in _CLIENT_CERTIFICATE_ALERTS):
        return Unreachable(
            f"{place}: {server} requires a client certificate, or does not trust ours "
            f"({_tls_reason(causes).lower().replace('_', ' ')}); set cert_file and key_file to one that it trusts"
        )
    if has(ssl.SSLError) and not has(ssl.SSLEOFError):
        return Unreachable(f"{place}: the port does not speak TLS; use http:// or the TLS port (15671)")
    if has(socket.gaierror):
        return Unreachable(f"{place}: unknown host name; check the spelling and the resolver")
    if has(ConnectionRefusedError):
        if server == METRICS_ENDPOINT:
            return Unreachable(
                f"{place}: {FailurePhrase.REFUSED}; check that the node is up, that the port is right (15692), and "
                "that the plugin is enabled (`rabbitmq-plugins enable rabbitmq_prometheus`)"
            )
        if server != _NODE:
            return Unreachable(f"{place}: {FailurePhrase.REFUSED}; check that {server} is up and its address is right")
        return Unreachable(
            f"{place}: {FailurePhrase.REFUSED}; check that the node is up, that the port is right (15672), and that "
            "the plugin is enabled (`rabbitmq-plugins enable rabbitmq_management`); a node in maintenance refuses, too "
            "(`rabbitmq-diagnostics status`)"
        )
    if has(TimeoutError):
        return Unreachable(
            f"{place}: {FailurePhrase.NO_FULL_ANSWER} {timeout:g} s; {server} hangs, or is slow: raise timeout"
        )
    if has(urllib3.exceptions.DecodeError):
        return BadAnswer(f"{place}: the answer cannot be decompressed; check the proxy in between")
    if has(http.client.IncompleteRead, urllib3.exceptions.InvalidChunkLength, requests.exceptions.ChunkedEncodingError):
        return BadAnswer(f"{place}: truncated answer; the node or a proxy closed the connection, try again")
    if has(http.client.BadStatusLine) and not has(http.client.RemoteDisconnected):
        return BadAnswer(f"{place}: not HTTP; is this an AMQP port (management: 15672), or a TLS port (https://)?")
    if has(ssl.SSLEOFError) or (has(ConnectionError) and address.tls):
        # TLS 1.3: the alert about a certificate may be lost if the server closes immediately.
        return Unreachable(
            f"{place}: connection closed without an answer; {server} is shutting down, or requires a client "
            "certificate that it trusts (cert_file and key_file)"
        )
    if has(ConnectionError):
        return Unreachable(
            f"{place}: connection closed without an answer; a TLS port (https://), or a node shutting down?"
        )
    return Unreachable(f"{place}: no connection ({_innermost(causes)}); check address and network")


def _unauthorised(username: str | None, reason: str) -> str:
    """Explain a 401 of RabbitMQ (`rabbit_mgmt_util:is_authorized`)."""
    if username is None:
        return (
            f"the token is refused{_in_brackets(reason)}; check that it has not expired, that its audience is the "
            "broker, and that it has a scope such as rabbitmq.tag:monitoring"
        )
    if "management user" in reason.lower():
        return (
            f"user {username!r} may not use the management API; "
            f"give it the tag: rabbitmqctl set_user_tags {username} monitoring"
        )
    if "localhost" in reason.lower():
        return f"user {username!r} may only log in from the broker's own host; create a user with the tag `monitoring`"
    return f"wrong user or password (user {username!r}); check username and password"


def _reason(body: bytes | bytearray) -> str:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    reason = document.get("reason") if isinstance(document, dict) else None
    return reason[:200] if isinstance(reason, str) else ""


def _in_brackets(reason: str) -> str:
    return f" ({reason})" if reason else ""


_CLIENT_CERTIFICATE_ALERTS = (
    "CERTIFICATE_REQUIRED",
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "HANDSHAKE_FAILURE",
)
"""OpenSSL's names of the alerts of a server that rejects a missing or untrusted client certificate."""


def _tls_reason(causes: list[BaseException]) -> str:
    reasons = (cause.reason for cause in causes if isinstance(cause, ssl.SSLError) and cause.reason)
    return next(reasons, "")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and all errors inside it: causes, contexts, wrapped reasons and arguments."""
    visited: set[int] = set()
    pending: list[object] = [error]
    while pending:
        item = pending.pop()
        if not isinstance(item, BaseException) or id(item) in visited:
            continue
        visited.add(id(item))
        yield item
        pending += [item.__cause__, item.__context__, getattr(item, "reason", None), *item.args]


def _innermost(causes: list[BaseException]) -> str:
    texts = [cause.strerror for cause in causes if isinstance(cause, OSError) and cause.strerror]
    return texts[-1] if texts else type(causes[0]).__name__
