"""Publishers that use AMQP 1.0: their messages are rejected, released, not confirmed, or never taken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from ackscope.findings import Subject
from lab.amqp10 import NativeClient, of_exchange, of_queue, paced
from lab.faults.fault import Fault, FaultSpec
from lab.faults.publishers.alarm import raise_memory_alarm

_RATE = 8.0
_PROOF = 20
USER = "fault-amqp10-refused"


def _until(fault: Fault, in_effect: Callable[[], bool]) -> None:
    """Announce the fault once it is in effect, and keep it until its end."""
    announced = False
    for _ in fault.ticks(0.5):
        if not announced and in_effect():
            fault.announce()
            announced = True


def _client(fault: Fault, name: str, where: str, **role: Any) -> NativeClient:
    client = NativeClient(fault.address, f"fault-{name}", where, **role)
    fault.later(client.close)
    if not name.endswith("-consumer"):
        fault.culprits.append(client)
    return client


def _fill(fault: Fault) -> None:
    """Publish to a queue with a limit far faster than its consumer settles."""
    queue = "fault.amqp10-full-queue"
    fault.make_queue(queue, {"x-queue-type": "quorum", "x-max-length": 10, "x-overflow": "reject-publish"})
    _client(fault, "amqp10-full-queue-consumer", of_queue(queue), credit=1, renew="settled", take=paced(0.5))
    publisher = _client(fault, "amqp10-full-queue", of_queue(queue), rate=_RATE)
    _until(fault, lambda: publisher.outcomes["rejected"] >= _PROOF)


def _miss(fault: Fault) -> None:
    """Publish to an exchange that has one binding, with another key."""
    name = "fault.amqp10-no-route"
    fault.make_queue(name)
    with fault.briefly(f"{name}.setup") as channel:
        channel.exchange_declare(name, "direct", durable=True)
        channel.queue_bind(name, name, "right")
    fault.later(lambda: fault.ask("DELETE", f"/api/exchanges/{quote(fault.address.vhost, safe='')}/{name}"))
    publisher = _client(fault, "amqp10-no-route", of_exchange(name, "wrong"), rate=_RATE)
    _until(fault, lambda: publisher.outcomes["released"] >= _PROOF)


def _unconfirmed(fault: Fault) -> None:
    """Publish messages that count as settled when they are sent; a consumer takes them."""
    queue = "fault.amqp10-unconfirmed"
    fault.make_queue(queue, {"x-queue-type": "quorum"})
    consumer = _client(
        fault, "amqp10-unconfirmed-consumer", of_queue(queue), credit=50, renew="settled", take=paced(100.0)
    )
    _client(fault, "amqp10-unconfirmed", of_queue(queue), rate=20.0, presettled=True)
    _until(fault, lambda: consumer.received >= _PROOF)


def _block(fault: Fault) -> None:
    """Publish, and raise a memory alarm, under which the broker takes nothing more."""
    queue = "fault.amqp10-blocked"
    fault.make_queue(queue, {"x-queue-type": "quorum", "x-max-length": 1000})
    publisher = _client(fault, "amqp10-blocked", of_queue(queue), rate=_RATE)
    _client(fault, "amqp10-blocked-consumer", of_queue(queue), credit=50, renew="settled", take=paced(100.0))
    for _ in fault.ticks(0.1):
        if publisher.outcomes["accepted"]:
            break
    raise_memory_alarm(fault)
    before: list[int] = []

    def stopped() -> bool:
        before.append(publisher.outcomes["accepted"])
        return len(before) > 20 and before[-1] == before[-20]

    _until(fault, stopped)


def _refuse(fault: Fault) -> None:
    """Attach a link twice a second as a user without write permission; the broker ends the session each time."""
    queue = "fault.amqp10-refused"
    vhost = quote(fault.address.vhost, safe="")
    fault.make_queue(queue)
    fault.ask("PUT", f"/api/users/{USER}", {"password": USER, "tags": ""})
    fault.later(lambda: fault.ask("DELETE", f"/api/users/{USER}"))
    fault.ask("PUT", f"/api/permissions/{vhost}/{USER}", {"configure": "", "write": "", "read": ".*"})
    own = replace(fault.address, username=USER, password=USER)
    publisher = NativeClient(own, USER, of_queue(queue), rate=_RATE)
    fault.later(publisher.close)
    fault.culprits.append(publisher)
    _until(fault, lambda: publisher.refused >= 5)


def _spec(
    name: str, rule: str, summary: str, subject: Subject, inject: Callable[[Fault], None], **more: Any
) -> FaultSpec:
    versions = {"brokers": ("4.3",), "unsure": ("4.0",), **more}
    return FaultSpec(
        name=name, rule=rule, summary=summary, subject=subject, inject=inject, protocol="AMQP 1.0", **versions
    )


SPECS = (
    _spec(
        "amqp10-full-queue",
        "pub-nacked-overflow",
        "a queue with a limit of 10 messages rejects what an AMQP 1.0 client publishes",
        Subject(kind="queue", name="fault.amqp10-full-queue"),
        _fill,
        brokers=("4.0", "4.3"),
        unsure=(),
    ),
    _spec(
        "amqp10-no-route",
        "pub-unroutable-returned",
        "an AMQP 1.0 client publishes to an exchange with a key that no binding has: each message is released",
        Subject(kind="exchange", name="fault.amqp10-no-route"),
        _miss,
    ),
    _spec(
        "amqp10-unconfirmed",
        "pub-no-confirms",
        "an AMQP 1.0 client publishes 20 messages/s that it settles when it sends them, to a durable queue",
        Subject(kind="vhost", name=""),
        _unconfirmed,
        brokers=("4.0", "4.3"),
        unsure=(),
    ),
    _spec(
        "amqp10-blocked",
        "memory-alarm",
        "a memory alarm stops an AMQP 1.0 client that publishes",
        Subject(kind="node", name=""),
        _block,
        brokers=("4.0", "4.3"),
        unsure=(),
        alone=True,
        also=("pub-blocked-by-alarm",),
    ),
    _spec(
        "amqp10-refused",
        "pub-access-refused",
        "the broker ends each session of an AMQP 1.0 client without write permission, which attaches twice a second",
        Subject(kind="connection", name=""),
        _refuse,
        alone=True,
        brokers=(),
        unsure=("4.0", "4.3"),
    ),
)
