import socket
import ssl

import pytest
from pika import exceptions
from pika.adapters.utils import connection_workflow as workflow

from ackscope.address import parse_amqp
from ackscope.errors import Refused, Unreachable
from probes.amqp_errors import explain_close, explain_open
from probes.settings import AmqpServer

SERVER = AmqpServer(parse_amqp("amqp://me:hunter2@broker:5672/shop"))


def failed(inner):
    """Return an error of the system as pika wraps it."""
    return exceptions.AMQPConnectionError(workflow.AMQPConnectionWorkflowFailed([inner]))


def closed(code, text):
    """Return a close by the broker during the handshake as pika quotes it."""
    return repr(exceptions.ConnectionClosedByBroker(code, text))


CASES = [
    (failed(workflow.AMQPConnectorSocketConnectError(ConnectionRefusedError(111, "x"))), Unreachable, "refused"),
    (failed(workflow.AMQPConnectorSocketConnectError(TimeoutError("x"))), Unreachable, "no answer in time"),
    (failed(workflow.AMQPConnectorSocketConnectError(OSError(113, "No route to host"))), Unreachable, "No route"),
    (failed(socket.gaierror(-2, "x")), Unreachable, "cannot resolve host name 'broker'"),
    (failed(workflow.AMQPConnectorTransportSetupError(ssl.SSLError(1, "x"))), Unreachable, "use amqp://"),
    (failed(workflow.AMQPConnectorStackTimeout("x")), Unreachable, "no answer in time"),
    (exceptions.ConnectionOpenAborted("x"), Unreachable, "says nothing"),
    (exceptions.IncompatibleProtocolError("x"), Unreachable, "amqps://"),
    (exceptions.ProbableAuthenticationError(closed(403, "ACCESS_REFUSED - x")), Refused, "login refused for user 'me'"),
    (
        exceptions.ProbableAccessDeniedError(closed(530, "NOT_ALLOWED - vhost shop not found")),
        Refused,
        "virtual host 'shop' does not exist",
    ),
    (
        exceptions.ProbableAccessDeniedError(closed(530, "NOT_ALLOWED - access to vhost 'shop' refused")),
        Refused,
        "may not use virtual host 'shop' (NOT_ALLOWED",
    ),
    (exceptions.ConnectionClosedByBroker(530, "NOT_ALLOWED - limit reached"), Refused, "limit reached"),
    (RuntimeError("odd"), Unreachable, "odd"),
]


@pytest.mark.parametrize(("error", "kind", "words"), CASES)
def test_why_a_connection_could_not_be_opened(error, kind, words):
    """The reason is one line with host and port and what to do, without a password."""
    reported = explain_open(error, SERVER)

    assert type(reported) is kind
    assert str(reported).startswith("broker:5672: ")
    assert words in str(reported)
    assert "hunter2" not in str(reported)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (exceptions.ChannelClosedByBroker(403, "ACCESS_REFUSED - x"), Refused, "user 'me' lacks a permission"),
        (
            exceptions.ChannelClosedByBroker(403, "access to exchange 'amq.default' in vhost '/' refused"),
            Refused,
            "its write permission must match amq.default too",
        ),
        (exceptions.ChannelClosedByBroker(403, "queue 'q' in exclusive use"), Refused, "another client consumes"),
        (exceptions.ChannelClosedByBroker(406, "inequivalent arg 'x-expires'"), Refused, "was not changed"),
        (exceptions.ChannelClosedByBroker(540, "NOT_IMPLEMENTED"), Refused, "refused by the broker (540"),
        (exceptions.ConnectionClosedByBroker(320, "CONNECTION_FORCED - x"), Unreachable, "CONNECTION_FORCED"),
        (exceptions.ConnectionClosedByBroker(501, "FRAME_ERROR"), Refused, "while declaring queue 'q' (501"),
        (exceptions.AMQPHeartbeatTimeout("x"), Unreachable, "no heartbeat"),
        (exceptions.ConnectionClosedByClient(200, "x"), Unreachable, "closed by this program"),
        (exceptions.StreamLostError("x"), Unreachable, "was lost while declaring queue 'q'"),
    ],
)
def test_why_an_open_link_ended(error, kind, words):
    """The reason names the current step, and what to do if anything can be done."""
    reported = explain_close(error, SERVER, "declaring queue 'q'")

    assert type(reported) is kind
    assert words in str(reported)
