"""Record the payloads in tests/fixtures: real brokers, each in one of the shapes below.

    .venv/bin/python scripts/record_shapes.py --broker 4.3 --out tests/fixtures [SHAPE ...]

Every shape is a private broker of the lab, brought into a state, given time for its statistics, and recorded.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pika
import requests
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from exporter.broker.record import record
from exporter.broker.settings import ManagementSettings
from lab.cluster import Lab, start_lab
from lab.node import NOTHING, Extra
from lab.ports import free_ports

STATISTICS_SECONDS = 11.0
"""Twice the interval at which a broker collects them, and a little."""

DURABLE = pika.BasicProperties(delivery_mode=2)
LINKS = ("rabbitmq_shovel", "rabbitmq_shovel_management", "rabbitmq_federation", "rabbitmq_federation_management")


class Shape(NamedTuple):
    """One state of a broker.

    Attributes:
        arrange: brings it about; what it opens lasts until the recording is done. May name another user.
        nodes: of the cluster.
        extra: what the nodes have beyond the usual.
    """

    arrange: Callable[[Lab, ExitStack], dict[str, str] | None]
    nodes: int = 1
    extra: Callable[[], Extra] = lambda: NOTHING


@contextmanager
def connected(lab: Lab, name: str, node: int = 0) -> Iterator[BlockingConnection]:
    """A client with a name of its own."""
    parameters = pika.URLParameters(lab.nodes[node].amqp)
    parameters.client_properties = {"connection_name": name}
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


def opened(lab: Lab, stack: ExitStack, name: str) -> BlockingChannel:
    """A channel of such a client, open until the stack ends."""
    return stack.enter_context(connected(lab, name)).channel()


def put(lab: Lab, path: str, body: dict[str, Any]) -> None:
    """Set something by the management API."""
    requests.put(f"{lab.nodes[0].management}/api/{path}", json=body, timeout=10).raise_for_status()


def publish(channel: BlockingChannel, exchange: str, key: str, count: int, size: int = 64) -> None:
    """Publish persistent messages."""
    for _ in range(count):
        channel.basic_publish(exchange, key, b"x" * size, DURABLE)


def consume(lab: Lab, stack: ExitStack, name: str, queue: str, prefetch: int) -> None:
    """A consumer that takes as many as it may, and settles none."""
    channel = opened(lab, stack, name)
    channel.basic_qos(prefetch_count=prefetch)
    channel.basic_consume(queue, lambda *_: None)
    channel.connection.process_data_events(1)


def declare(channel: BlockingChannel, name: str, **arguments: object) -> None:
    """A durable queue; `_` in the name of an argument is written `-` and gets its `x-`."""
    channel.queue_declare(
        name, durable=True, arguments={f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    )


def empty(lab: Lab, stack: ExitStack) -> None:
    """Nothing has happened yet."""
    del lab, stack


def sample(lab: Lab, stack: ExitStack) -> None:
    """The queues of the sets directly below each version, and how they are bound."""
    lab.ctl(0, "set_cluster_name", "shop")
    channel = opened(lab, stack, "shop-publisher")
    declare(channel, "orders.classic", max_length=10_000, dead_letter_exchange="dead")
    declare(channel, "orders.quorum", queue_type="quorum", delivery_limit=5)
    declare(channel, "orders.stream", queue_type="stream")
    for name in ("orders.dead", "idle", "bücher/заказы"):
        declare(channel, name)
    channel.exchange_declare("orders", "topic", durable=True)
    channel.exchange_declare("dead", "fanout", durable=True)
    for name in ("orders.classic", "orders.quorum", "orders.stream"):
        channel.queue_bind(name, "orders", "order.#")
    channel.queue_bind("orders.dead", "dead")
    put(lab, "policies/%2F/lim", {"pattern": "^orders", "definition": {"max-length": 5000, "message-ttl": 600_000}})
    channel.confirm_delivery()
    publish(channel, "orders", "order.new", 200)
    publish(channel, "", "bücher/заказы", 200)
    consume(lab, stack, "stuck", "bücher/заказы", 3)
    consume(lab, stack, "shop-worker", "orders.classic", 10)


def backlog(lab: Lab, stack: ExitStack) -> None:
    """Classic queues that fill up; one with a consumer that holds what it gets, one that redelivers."""
    channel = opened(lab, stack, "publisher")
    for number in range(4):
        declare(channel, f"backlog.{number}", max_length=1000 * (number + 1))
        publish(channel, "", f"backlog.{number}", 500 * number, 200)
    consume(lab, stack, "holder", "backlog.1", 50)
    for _ in range(20):
        method, _, _ = channel.basic_get("backlog.2")
        channel.basic_reject(method.delivery_tag, requeue=True)
    channel.basic_get("backlog.0")


def one_down(lab: Lab, stack: ExitStack) -> None:
    """Quorum queues and streams on three nodes, of which the third is gone."""
    channel = opened(lab, stack, "publisher")
    for number in range(3):
        declare(channel, f"quorum.{number}", queue_type="quorum")
        publish(channel, "", f"quorum.{number}", 20)
    declare(channel, "stream", queue_type="stream", initial_cluster_size=3)
    declare(channel, "classic")
    publish(channel, "", "stream", 50)
    consume(lab, stack, "reader", "quorum.1", 5)
    time.sleep(STATISTICS_SECONDS)
    lab.kill(2)


def without_statistics(lab: Lab, stack: ExitStack) -> None:
    """Statistics are turned off in its configuration."""
    backlog(lab, stack)
    declare(opened(lab, stack, "more"), "quorum", queue_type="quorum")


def sees_nothing(lab: Lab, stack: ExitStack) -> dict[str, str]:
    """Asked by a user that has the tag `monitoring`, and permissions nowhere."""
    backlog(lab, stack)
    lab.ctl(0, "add_user", "blind", "s3cret")
    lab.ctl(0, "set_user_tags", "blind", "monitoring")
    return {"username": "blind", "password": "s3cret"}


def linked(lab: Lab, stack: ExitStack) -> None:
    """Shovels and federation links that work and that do not, policies, limits, a second virtual host."""
    lab.ctl(0, "set_cluster_name", "shop")
    amqp, away = lab.nodes[0].amqp, "amqp://mover:s3cret@127.0.0.1:1"
    channel = opened(lab, stack, "publisher")
    put(lab, "vhosts/billing", {"description": "invoices", "tags": "shop"})
    put(lab, "policies/%2F/lim", {"pattern": "^orders", "definition": {"max-length": 5000}, "apply-to": "queues"})
    put(lab, "operator-policies/%2F/op", {"pattern": "^orders", "definition": {"max-length": 4000}, "priority": 1})
    put(lab, "policies/%2F/fed", {"pattern": "^fed", "definition": {"federation-upstream-set": "all"}, "priority": 5})
    put(lab, "vhost-limits/billing/max-connections", {"value": 100})
    put(lab, "vhost-limits/billing/max-queues", {"value": -1})
    put(lab, "user-limits/guest/max-channels", {"value": 200})
    for name in ("orders", "fed.queue"):
        declare(channel, name)
    channel.exchange_declare("topic", "topic", durable=True)
    channel.exchange_declare("fed.exchange", "fanout", durable=True)
    channel.queue_bind("orders", "topic", "order.*", {"match": "any"})
    channel.exchange_bind("fed.exchange", "topic", "fed.#")
    ends = {"src-protocol": "amqp091", "dest-protocol": "amqp091", "dest-uri": amqp, "dest-queue": "moved"}
    for name, source in (("mover", amqp), ("broken", away)):
        put(lab, f"parameters/shovel/%2F/{name}", {"value": {**ends, "src-uri": source, "src-queue": "orders"}})
    for name, source in (("near", f"{amqp}/%2F"), ("away", away)):
        put(lab, f"parameters/federation-upstream/%2F/{name}", {"value": {"uri": source}})
    publish(channel, "topic", "order.new", 10)
    wrong = lab.nodes[0].management.replace("guest:guest", "guest:wrong")
    requests.get(f"{wrong}/api/overview", timeout=10)
    # A shovel that cannot connect is not listed while it is started again.
    time.sleep(3)


def alarmed(lab: Lab, stack: ExitStack) -> None:
    """A TLS listener whose certificate ends in ten days, and alarms for memory and disk."""
    channel = opened(lab, stack, "publisher")
    declare(channel, "orders")
    publish(channel, "", "orders", 10)
    lab.ctl(0, "set_vm_memory_high_watermark", "0.000001")
    lab.ctl(0, "set_disk_free_limit", str(10**14))


def with_tls() -> Extra:
    """A TLS listener with a certificate that signs itself."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, name) for name in ("cert.pem", "key.pem")}
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "10"]
        whom = ["-subj", "/CN=lab", "-addext", "subjectAltName=IP:127.0.0.1"]
        made = ["-out", str(files["cert.pem"]), "-keyout", str(files["key.pem"])]
        subprocess.run(["openssl", "req", "-x509", *kind, *whom, *made], check=True, capture_output=True)
        content = {name: file.read_bytes() for name, file in files.items()}
    lines = (
        f"listeners.ssl.1 = 127.0.0.1:{free_ports(1)[0]}",
        "ssl_options.certfile = {folder}/cert.pem",
        "ssl_options.keyfile = {folder}/key.pem",
        "ssl_options.cacertfile = {folder}/cert.pem",
    )
    return Extra(config="".join(f"{line}\n" for line in lines), files=content)


SHAPES = {
    "empty": Shape(empty),
    "sample": Shape(sample),
    "backlog": Shape(backlog),
    "one-down": Shape(one_down, nodes=3),
    "no-statistics": Shape(without_statistics, extra=lambda: Extra(config="management.disable_stats = true\n")),
    "sees-nothing": Shape(sees_nothing),
    "linked": Shape(linked, extra=lambda: Extra(plugins=LINKS)),
    "alarmed": Shape(alarmed, extra=with_tls),
}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Record the payloads in tests/fixtures.")
    parser.add_argument("--broker", required=True, help="3.10, 4.0 or 4.3")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("shapes", nargs="*", default=list(SHAPES), metavar="SHAPE", help=", ".join(SHAPES))
    args = parser.parse_args()
    for name in args.shapes:
        shape = SHAPES[name]
        with start_lab(args.broker, shape.nodes, extra=shape.extra()) as lab, ExitStack() as stack:
            user = shape.arrange(lab, stack) or {}
            time.sleep(STATISTICS_SECONDS)
            print(record(ManagementSettings(url=_plain(lab, user), timeout=60.0), args.out, name), flush=True)
    return 0


def _plain(lab: Lab, user: dict[str, str]) -> str:
    """The lab's address, asked by this user."""
    if not user:
        return lab.nodes[0].management
    host = lab.nodes[0].management.partition("@")[2]
    return f"http://{quote(user['username'])}:{quote(user['password'])}@{host}"


if __name__ == "__main__":
    sys.exit(main())
