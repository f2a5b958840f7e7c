"""A broker on which everything happens once: what the sample workload does, and a little more of each kind."""

import contextlib
import itertools
import threading
from urllib.parse import urlsplit

import pika
import requests

from lab.amqp import parse_lab_address
from lab.node import Extra
from lab.workload.__main__ import run_jobs

PLUGINS = Extra(
    plugins=(
        "rabbitmq_shovel",
        "rabbitmq_shovel_management",
        "rabbitmq_federation",
        "rabbitmq_federation_management",
    )
)
CROWD = (
    "Spin = fun Spin(Until) -> case erlang:monotonic_time(millisecond) < Until of true -> Spin(Until); _ -> ok end end,"
    "Until = erlang:monotonic_time(millisecond) + 5500, [spawn(fun() -> Spin(Until) end) || _ <- lists:seq(1, 8)]."
)
"""More to do than there are schedulers, from one statistic of a node to the next: its run queue is empty else."""
_STAMPS = itertools.count(1_700_000_000)


def persistent():
    """Properties of a message that outlives the broker; each is a second younger than the one before it."""
    return pika.BasicProperties(delivery_mode=2, timestamp=next(_STAMPS))


class Api:
    """The management API of a node, to put things there."""

    def __init__(self, node):
        parts = urlsplit(node.management)
        self._base = f"http://{parts.hostname}:{parts.port}/api"
        self._session = requests.Session()
        self._session.auth = (parts.username, parts.password)

    def put(self, path, body):
        """Make something, or change it."""
        self._session.put(f"{self._base}/{path}", json=body, timeout=10).raise_for_status()

    def protect(self, *, protected):
        """Protect the virtual host from deletion, or no longer; a broker before 4.0 cannot, and says so."""
        method = self._session.post if protected else self._session.delete
        method(f"{self._base}/vhosts/%2F/deletion/protection", timeout=10)

    def delete(self, path):
        """Take something away."""
        self._session.delete(f"{self._base}/{path}", timeout=10)


class Busy:
    """All that goes on; `stir` may be called again and again, and each time something else is different.

    Args:
        lab: of one node, with `PLUGINS`.
    """

    def __init__(self, lab):
        self._lab, self._node, self._api = lab, lab.nodes[0], Api(lab.nodes[0])
        self._ending = threading.Event()
        self._shop = threading.Thread(
            target=run_jobs, args=(parse_lab_address(self._node.amqp), self._ending), daemon=True
        )
        self._clients = []
        self._rounds = 0
        self._first, self._transaction, self._tag = None, None, None

    def __enter__(self):
        self._shop.start()
        self._declare()
        return self

    def __exit__(self, *_):
        self._alarms("0.6", "20MB")
        self._ending.set()
        for client in self._clients:
            with contextlib.suppress(pika.exceptions.AMQPError, OSError):
                client.close()
        self._shop.join(10)

    def stir(self):
        """Let something of every kind happen."""
        self._rounds += 1
        odd = self._rounds % 2
        # While an alarm is in force nobody can publish.
        self._alarms("0.6", "20MB")
        for part in (self._objects, self._messages, self._logins, self._holding):
            part(odd)
        if odd:
            self._alarms("absolute", "10MB", "9999GB")
            self._lab.ctl(0, "eval", CROWD)
        self._lab.ctl(0, "trace_on" if odd else "trace_off")
        self._lab.ctl(0, "eval", f"rabbit_maintenance:{'mark' if odd else 'unmark'}_as_being_drained().")
        self._api.protect(protected=bool(odd))

    def _alarms(self, *limits):
        """Memory above and free disk space below these limits raise an alarm."""
        *memory, disk = limits
        self._lab.ctl(0, "set_vm_memory_high_watermark", *memory)
        self._lab.ctl(0, "set_disk_free_limit", disk)

    def _open(self, name, **more):
        parameters = pika.URLParameters(self._node.amqp)
        parameters.client_properties = {"connection_name": name}
        parameters.blocked_connection_timeout = 60
        for key, value in more.items():
            setattr(parameters, key, value)
        client = pika.BlockingConnection(parameters)
        self._clients.append(client)
        return client

    def _declare(self):
        channel = self._open("setup").channel()
        limits = {"x-max-length": 10_000, "x-expires": 3_600_000, "x-message-ttl": 900_000}
        for name, kind in (
            ("busy.classic", "classic"),
            ("busy.quorum", "quorum"),
            ("get.classic", "classic"),
            ("get.quorum", "quorum"),
            ("busy.free", "classic"),
            ("busy.head", "classic"),
        ):
            arguments = {"x-queue-type": kind, "x-max-length-bytes": 100_000_000, **limits}
            channel.queue_declare(name, durable=True, arguments=arguments)
        segments = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 5000}
        channel.queue_declare("busy.stream", durable=True, arguments=segments)
        at_least_once = {
            "x-queue-type": "quorum",
            "x-dead-letter-exchange": "busy",
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
            "x-delivery-limit": 2,
        }
        channel.queue_declare("safe.quorum", durable=True, arguments=at_least_once)
        channel.queue_declare("busy.lazy", durable=True, arguments={"x-queue-mode": "lazy"})
        channel.queue_declare("busy.single", durable=True, arguments={"x-single-active-consumer": True})
        channel.exchange_declare("busy", "topic", durable=True)
        channel.queue_bind("busy.classic", "busy", "#")

    def _objects(self, odd):
        """Policies, limits, links, bindings, queues, virtual hosts, users that come and go."""
        api = self._api
        somewhere = self._node.amqp if odd else "amqp://nobody:wrong@127.0.0.1:1"
        api.put(
            "policies/%2F/busy",
            {
                "pattern": "^busy" if odd else "^busy.c",
                "definition": self._limits(odd),
                "apply-to": "all",
                "priority": odd,
            },
        )
        api.put(
            "policies/%2F/delivery",
            {
                "pattern": "^safe",
                "definition": {"delivery-limit": 2 - odd},
                "apply-to": "queues",
            },
        )
        api.put("operator-policies/%2F/most", {"pattern": "^b", "definition": {"max-length": 9000}, "priority": odd})
        api.put("vhost-limits/%2F/max-connections", {"value": 500 + odd})
        api.put("vhost-limits/%2F/max-queues", {"value": 900})
        api.put("parameters/federation-upstream/%2F/hub", {"value": {"uri": somewhere, "reconnect-delay": 1}})
        api.put(
            "policies/%2F/federate",
            {
                "pattern": "^busy.fed$",
                "definition": {"federation-upstream-set": "all"},
                "apply-to": "exchanges",
                "priority": 10,
            },
        )
        shovel = {
            "src-uri": somewhere,
            "src-queue": "busy.from",
            "dest-uri": self._node.amqp,
            "dest-queue": "busy.to",
            "reconnect-delay": 1,
        }
        api.put("parameters/shovel/%2F/away", {"value": shovel})
        api.put("parameters/shovel/%2F/steady", {"value": {**shovel, "src-uri": self._node.amqp}})
        api.put("exchanges/%2F/busy.fed", {"type": "topic", "durable": True})
        if odd:
            api.put("vhosts/busy", {"description": "comes and goes", "tracing": True})
            api.put("exchanges/%2F/unbound", {"type": "fanout", "durable": True})
        else:
            api.delete("vhosts/busy")
            api.delete("exchanges/%2F/unbound")
        channel = self._open("objects").channel()
        with contextlib.suppress(pika.exceptions.AMQPError):
            channel.queue_declare(f"gone.{self._rounds}")
            channel.queue_bind(f"gone.{self._rounds}", "busy", "x")
            if not odd:
                channel.queue_delete(f"gone.{self._rounds - 1}")

    def _limits(self, odd):
        """What the lower of argument and policy is differs each time."""
        return {
            "max-length": 5000 + odd,
            "max-length-bytes": 50_000_000 + odd,
            "message-ttl": 800_000 + 1000 * odd,
            "expires": 3_000_000 + 1000 * odd,
        }

    def _messages(self, odd):
        """Every way to publish, fetch, deliver and settle."""
        client = self._open("messages")
        channel = client.channel()
        for name in ("busy.classic", "busy.quorum", "busy.stream", "get.classic", "get.quorum"):
            for _ in range(20 + 5 * odd):
                channel.basic_publish("", name, b"m" * 300, persistent())
        for _ in range(10):
            # Too large for the queue's index: it goes to the message store, and comes back from it.
            channel.basic_publish("", "busy.lazy", b"L" * 6000, persistent())
        for _ in range(5):
            channel.basic_get("busy.lazy", auto_ack=True)
        for _ in range(5):
            channel.basic_publish("", "safe.quorum", b"to be dead-lettered at least once", persistent())
            if (refused := channel.basic_get("safe.quorum")[0]) is not None:
                channel.basic_nack(refused.delivery_tag, requeue=False)
        channel.basic_publish("busy", "key", b"through an exchange", persistent())
        self._unroutable(client)
        for name in ("get.classic", "get.quorum"):
            channel.basic_get(name, auto_ack=True)
            tag = channel.basic_get(name)[0].delivery_tag
            channel.basic_nack(tag, requeue=True)
            tag = channel.basic_get(name)[0].delivery_tag
            channel.basic_ack(tag)
        # The oldest goes and a younger one is left: of other queues the oldest is a message that is held for good.
        channel.basic_publish("", "busy.head", b"younger", persistent())
        if self._rounds > 1:
            channel.basic_get("busy.head", auto_ack=True)
        channel.queue_declare("busy.empty")
        channel.basic_get("busy.empty", auto_ack=True)
        # Every other time the client stays, and its consumer with it.
        automatic = client.channel()
        automatic.basic_consume("busy.classic", lambda *_: None, auto_ack=True)
        client.process_data_events(0.3)
        if odd:
            client.close()

    def _unroutable(self, client):
        channel = client.channel()
        channel.basic_publish("", "nobody.has.this", b"dropped")
        channel.confirm_delivery()
        with contextlib.suppress(pika.exceptions.UnroutableError):
            channel.basic_publish("", "nobody.has.this", b"returned", mandatory=True)

    def _holding(self, odd):
        """Consumers that hold what they get, and a transaction that stays open."""
        client = self._open("holder")
        channel = client.channel()
        channel.basic_qos(prefetch_count=2 + odd)
        channel.basic_consume("busy.quorum", lambda *_: None)
        shared = client.channel()
        shared.basic_qos(prefetch_count=5, global_qos=True)
        shared.basic_consume("busy.classic", lambda *_: None)
        client.process_data_events(0.3)
        if self._transaction is None:
            self._transaction = self._open("transaction").channel()
            self._transaction.tx_select()
        self._transaction.basic_qos(prefetch_count=5 + odd)
        self._transaction.basic_qos(prefetch_count=50 + odd, global_qos=True)
        if odd:
            self._tag = self._transaction.basic_consume("busy.empty", lambda *_: None)
        else:
            self._transaction.basic_cancel(self._tag)
        self._transaction.basic_publish("", "busy.classic", b"uncommitted")
        fetched = self._transaction.basic_get("get.classic")[0]
        if fetched is not None:
            self._transaction.basic_ack(fetched.delivery_tag)
        self._taking_turns(odd)

    def _taking_turns(self, odd):
        """Two consumers of which one is active, and one without a limit, until the first of them goes."""
        if not odd:
            self._first.close()
            return
        self._first, second = self._open("first"), self._open("second")
        for client, prefetch in ((self._first, 0), (second, 3)):
            channel = client.channel()
            channel.basic_qos(prefetch_count=prefetch)
            channel.basic_consume("busy.single", lambda *_: None)
            channel.basic_consume("busy.free", lambda *_: None)
            client.process_data_events(0.2)

    def _logins(self, odd):
        for _ in range(1 + odd):
            with contextlib.suppress(pika.exceptions.AMQPError):
                self._open("stranger", credentials=pika.PlainCredentials("nobody", "wrong"))
