"""Maps exceptions of pika and of sockets to errors of `ackscope.errors` with readable messages.

Messages name host and port, but never a password.
"""

import re
import socket
import ssl
from collections.abc import Iterator

from pika import exceptions
from pika.adapters.utils import connection_workflow

from ackscope.errors import BrokerError, Refused, Unreachable
from ackscope.failures import FailurePhrase
from probes.settings import AmqpServer

_LOCAL = {"localhost", "127.0.0.1", "::1"}
_CODED = re.compile(r"\((\d{3})\) [\"'](.*)[\"']")


def explain_open(error: BaseException, server: AmqpServer) -> BrokerError:
    """Return the error for a connection that could not be opened."""
    where = server.address.where
    for cause in _causes(error):
        mapped = _system_error(cause, server) or _protocol_error(cause, server)
        if mapped is not None:
            return mapped
    return Unreachable(f"{where}: no connection ({error})")


def explain_close(error: BaseException, server: AmqpServer, doing: str) -> BrokerError:
    """Return the error for an open connection or channel that ended during `doing`, such as "declaring queue 'x'"."""
    where = server.address.where
    match error:
        case exceptions.ChannelClosedByBroker():
            return _channel_closed(int(error.reply_code), str(error.reply_text), server, doing)
        case exceptions.ConnectionClosedByBroker():
            code, text = int(error.reply_code), str(error.reply_text)
            if code == 320:
                return Unreachable(f"{where}: the broker closed the connection ({text})")
            return Refused(f"{where}: the broker closed the connection while {doing} ({code} {text})")
        case exceptions.AMQPHeartbeatTimeout():
            return Unreachable(f"{where}: {FailurePhrase.NO_HEARTBEAT}s from the broker; the connection is dead")
        case exceptions.ConnectionClosedByClient():
            return Unreachable(f"{where}: the connection was closed by this program")
    return Unreachable(f"{where}: the connection was lost while {doing}")


def shared(server: AmqpServer, doing: str) -> Refused:
    """Return the error for a queue with another consumer, which would take messages away from the probe."""
    return Refused(
        f"{server.address.where}: {doing}: another client consumes from this queue; "
        "if two exporters monitor one cluster, set a different probes.prefix for each"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, the outermost first. Of several connection attempts only the last counts."""
    yield error
    if isinstance(error, connection_workflow.AMQPConnectionWorkflowFailed):
        yield from _causes(error.exceptions[-1])
    elif isinstance(error, connection_workflow.AMQPConnectorPhaseErrorBase):
        yield from _causes(error.exception)
    elif error.args and isinstance(error.args[0], BaseException):
        yield from _causes(error.args[0])


def _system_error(cause: BaseException, server: AmqpServer) -> BrokerError | None:
    address = server.address
    match cause:
        case socket.gaierror():
            return Unreachable(f"{address.where}: cannot resolve host name {address.host!r}")
        case ssl.SSLCertVerificationError():
            return Refused(
                f"{address.where}: certificate not trusted ({cause.verify_message}); "
                "set ca_file to the certificate of its CA"
            )
        case ssl.SSLError():
            return Unreachable(
                f"{address.where}: no TLS on this port ({getattr(cause, 'reason', None) or cause}); "
                "use amqp:// for a port without TLS, or give the TLS port (usually 5671)"
            )
        case TimeoutError() | connection_workflow.AMQPConnectorStackTimeout():
            return Unreachable(f"{address.where}: {FailurePhrase.NO_ANSWER_IN_TIME}; check host, port and firewall")
        case ConnectionRefusedError():
            return Unreachable(f"{address.where}: {FailurePhrase.REFUSED}; is RabbitMQ listening there?")
        case OSError():
            return Unreachable(f"{address.where}: no connection ({cause.strerror or cause})")
    return None


def _protocol_error(cause: BaseException, server: AmqpServer) -> BrokerError | None:
    address = server.address
    match cause:
        case exceptions.ConnectionOpenAborted():
            return Unreachable(
                f"{address.where}: accepts connections and then {FailurePhrase.SILENT_AFTER_CONNECT}; "
                "is it an AMQP port?"
            )
        case exceptions.IncompatibleProtocolError():
            return Unreachable(
                f"{address.where}: closes the connection before the AMQP handshake; "
                "is it the AMQP port (usually 5672), or a TLS port that needs amqps://?"
            )
        case exceptions.ProbableAuthenticationError() | exceptions.AuthenticationError():
            guest = address.username == "guest" and address.host not in _LOCAL
            hint = " (guest may connect from localhost only)" if guest else ""
            return Refused(
                f"{address.where}: login refused for user {address.username!r}; check name and password{hint}"
            )
        case exceptions.ProbableAccessDeniedError() | exceptions.ConnectionClosedByBroker():
            coded = _CODED.search(
                str(cause.args[0]) if len(cause.args) == 1 else f"({cause.args[0]}) '{cause.args[1]}'"
            )
            text = coded.group(2) if coded else str(cause)
            if "not found" in text:
                return Refused(f"{address.where}: virtual host {address.vhost!r} does not exist")
            return Refused(
                f"{address.where}: user {address.username!r} may not use virtual host {address.vhost!r} ({text}); "
                "the URL ends with the virtual host to use, as in amqp://HOST:5672/NAME"
            )
    return None


def _channel_closed(code: int, text: str, server: AmqpServer, doing: str) -> BrokerError:
    where, user = server.address.where, server.address.username
    if code == 403 and "exclusive" in text:
        return shared(server, doing)
    if code == 403:
        # To publish to a queue by its name is to write to the default exchange.
        hint = "; its write permission must match amq.default too" if "'amq.default'" in text else ""
        return Refused(f"{where}: {doing}: user {user!r} lacks a permission ({text}){hint}")
    if code == 406 and "inequivalent" in text:
        return Refused(
            f"{where}: {doing}: a queue of that name exists with other arguments, and was not changed ({text}); "
            "delete it if it belongs to a probe, or set another probes.prefix"
        )
    return Refused(f"{where}: {doing}: refused by the broker ({code} {text})")
