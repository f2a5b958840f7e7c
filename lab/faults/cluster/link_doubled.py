"""link-doubled: two shovels take from the same exchange, so their target gets every message twice."""

from functools import partial

from pika.adapters.blocking_connection import BlockingChannel

from ackscope.findings import Subject
from lab.amqp import publish
from lab.faults.cluster.nodes import until
from lab.faults.cluster.shovels import PLUGINS
from lab.faults.fault import Fault, FaultSpec
from lab.node import Extra

NAME = "fault.link-doubled"
OTHER, FEDERATED = f"{NAME}.other", "fault.link-twice"
_RATE, _PROOF = 5.0, 40
_FEDERATION = Extra(plugins=("rabbitmq_federation_management",))


def inject(fault: Fault) -> None:
    """Shovel an exchange to a consumed queue, twice."""
    fault.make_queue(NAME)
    channel = _exchange(fault, NAME)
    channel.basic_consume(NAME, lambda inner, method, *_: inner.basic_ack(method.delivery_tag))
    uri = _uri(fault)
    for name in (NAME, OTHER):
        path = f"/api/parameters/shovel/%2F/{name}"
        fault.later(partial(fault.ask, "DELETE", path))
        value = {"src-uri": uri, "src-exchange": NAME, "src-exchange-key": "#", "dest-uri": uri, "dest-queue": NAME}
        fault.ask("PUT", path, {"value": value})
    until(fault, "two running shovels", lambda: _running(fault, "shovels", "name", (NAME, OTHER)) == 2)
    _publish(fault, NAME)


def inject_federation(fault: Fault) -> None:
    """Federate an exchange of another virtual host with two upstreams that mean the same."""
    vhost = f"/api/vhosts/{FEDERATED}"
    fault.later(lambda: fault.ask("DELETE", vhost))
    fault.ask("PUT", vhost)
    permissions = {"configure": ".*", "write": ".*", "read": ".*"}
    fault.ask("PUT", f"/api/permissions/{FEDERATED}/{fault.address.username}", permissions)
    fault.ask("PUT", f"/api/exchanges/{FEDERATED}/{FEDERATED}", {"type": "topic", "durable": True})
    _exchange(fault, FEDERATED)
    for name in ("fault-a", "fault-b"):
        path = f"/api/parameters/federation-upstream/%2F/{name}"
        fault.later(partial(fault.ask, "DELETE", path))
        fault.ask("PUT", path, {"value": {"uri": f"{_uri(fault)}/{FEDERATED}", "exchange": FEDERATED}})
    path = f"/api/policies/%2F/{FEDERATED}"
    fault.later(lambda: fault.ask("DELETE", path))
    definition = {"federation-upstream-set": "all"}
    fault.ask("PUT", path, {"pattern": f"^{FEDERATED}$", "definition": definition, "apply-to": "exchanges"})
    links = ("fault-a", "fault-b")
    until(fault, "two running links", lambda: _running(fault, "federation-links", "upstream", links) == 2)
    fault.announce()
    fault.hold()


def _uri(fault: Fault) -> str:
    return f"amqp://{fault.address.username}:{fault.address.password}@{fault.address.host}:{fault.address.port}"


def _exchange(fault: Fault, name: str) -> BlockingChannel:
    channel = fault.connect(name.replace("fault.", "fault-")).channel()
    channel.exchange_declare(name, "topic", durable=True)
    fault.later(lambda: _delete(fault, name))
    return channel


def _delete(fault: Fault, name: str) -> None:
    with fault.briefly("fault-cleanup") as channel:
        channel.exchange_delete(name)


def _running(fault: Fault, kind: str, key: str, names: tuple[str, ...]) -> int:
    state = "status" if kind == "federation-links" else "state"
    return sum(each.get(key) in names and each.get(state) == "running" for each in fault.ask("GET", f"/api/{kind}"))


def _publish(fault: Fault, exchange: str) -> None:
    publisher = fault.connect(f"{exchange.replace('fault.', 'fault-')}-publisher").channel()
    publisher.confirm_delivery()
    for number, _ in enumerate(fault.ticks(1 / _RATE)):
        publish(publisher, "order", exchange=exchange)
        if number == _PROOF:
            fault.announce()


SPEC = FaultSpec(
    name="link-doubled",
    rule="link-doubled",
    summary="two shovels take from the same exchange to the same queue",
    subject=Subject(kind="link", name=NAME),
    inject=inject,
    extra=PLUGINS,
)
FEDERATION = FaultSpec(
    name="link-doubled-federation",
    rule="link-doubled",
    summary="an exchange is federated with two upstreams that mean the same exchange",
    subject=Subject(kind="link", name="fault-a"),
    inject=inject_federation,
    extra=_FEDERATION,
)
