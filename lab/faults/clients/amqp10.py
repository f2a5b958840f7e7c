"""Connections and sessions of AMQP 1.0 clients that come and go, or are opened and never ended."""

from ackscope.findings import Subject
from lab.amqp10 import NativeClient, of_queue
from lab.faults.clients.again import PROOF
from lab.faults.fault import Fault, FaultSpec

_RATE = 2.0
_MOST = 120
_SESSIONS = 3.0
_OPEN = 10
_LEAKED = "fault-amqp10-connection-leak"
_BROKERS = ("4.0", "4.3")


def _churn(fault: Fault) -> None:
    """Connect and disconnect; each connection stays open until the next one is due."""
    fault.make_queue("fault.amqp10-churn")
    for times, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        client = NativeClient(fault.address, "fault-amqp10-churn", of_queue("fault.amqp10-churn"), rate=1.0)
        fault.ending.wait(0.8 / _RATE)
        client.close()
        if times == PROOF:
            fault.announce()


def _leak_connections(fault: Fault) -> None:
    """Open connections, up to a number that one machine can serve with a thread each."""
    fault.make_queue("fault.amqp10-connection-leak")
    for opened, _ in enumerate(fault.ticks(1 / _RATE), start=1):
        if opened <= _MOST:
            client = NativeClient(fault.address, _LEAKED, of_queue("fault.amqp10-connection-leak"), credit=1)
            fault.later(client.close)
        if opened == _OPEN:
            fault.announce()


def _leak_sessions(fault: Fault) -> None:
    """Attach a link in a new session three times a second, and never detach one."""
    fault.make_queue("fault.amqp10-session-leak")
    client = NativeClient(
        fault.address, "fault-amqp10-session-leak", of_queue("fault.amqp10-session-leak"), rate=0.01, attaches=_SESSIONS
    )
    fault.later(client.close)
    announced = False
    for _ in fault.ticks(0.5):
        if not announced and client.attached >= 2 * _OPEN:
            fault.announce()
            announced = True


SPECS = (
    FaultSpec(
        name="amqp10-churn",
        rule="connection-churn",
        summary="an AMQP 1.0 client connects and disconnects twice a second",
        subject=Subject(kind="cluster", name=""),
        inject=_churn,
        protocol="AMQP 1.0",
        brokers=_BROKERS,
        alone=True,
    ),
    FaultSpec(
        name="amqp10-connection-leak",
        rule="connection-leak",
        summary="an application opens two AMQP 1.0 connections a second and closes none",
        subject=Subject(kind="connection", name=""),
        inject=_leak_connections,
        protocol="AMQP 1.0",
        brokers=_BROKERS,
        alone=True,
        one_shot=False,
    ),
    FaultSpec(
        name="amqp10-session-leak",
        rule="channel-leak",
        summary="an AMQP 1.0 client opens three sessions a second and ends none",
        subject=Subject(kind="connection", name=""),
        inject=_leak_sessions,
        protocol="AMQP 1.0",
        brokers=_BROKERS,
    ),
)
