"""The commands of the catalogue: filled with facts of objects of a throwaway broker, and run by a real shell."""

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlsplit

import pika
import requests
from jinja2 import meta, nodes

from ackscope.address import parse_amqp
from diagnosis.pages import StepTemplate, pages
from diagnosis.text import MANAGEMENT, _command, _environment
from lab.amqp import connect

TOOLS = (
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmq-upgrade",
)
TOOL_SECONDS = 60
CREATION_SECONDS = 20.0

ABOUT_A_VHOST = {"pub-no-confirms", "pub-transient-in-durable"}
ABOUT_A_CONNECTION = {"bad-ack-loop", "consumer-tcp-backpressure", "zombie-connection"}
"""Rules by what their findings are about; of all others whose commands name the subject it is a node."""

ABOUT_A_QUORUM_QUEUE = {
    "orphaned-unacked",
    "poison-drop",
    "requeue-loop",
    "dlq-filling:1",
    "dead-letters-expire:1",
    "qq-segment-growth",
}
ABOUT_AN_UNUSED_QUEUE = {"orphan-queue"}
ABOUT_AN_EXCLUSIVE_QUEUE = {"exclusive-name-locked"}
"""Rules, or single steps of them, by their queue; that of all others is a classic queue with a consumer."""


@dataclass(frozen=True, slots=True)
class CatalogueCommand:
    """A command of a page.

    Attributes:
        rule: the page.
        place: its rule, and the number of its step.
        step: the template.
    """

    rule: str
    place: str
    step: StepTemplate


@dataclass(frozen=True, slots=True)
class Names:
    """The objects that commands are filled with. Their names need quotes in a shell and escapes in a URL."""

    node: str = "rabbit@one"
    management: str = MANAGEMENT
    connection: str = "127.0.0.1:50001 -> 127.0.0.1:5672"
    version: tuple[int, int] | None = None
    vhost: str = "team/it's a test"
    user: str = "o'brien & sons"
    classic: str = "orders (new)"
    unused: str = "bob's queue"
    exclusive: str = "own $HOME"
    quorum: str = "invoices.v1"
    stream: str = "audit log"
    exchange: str = "in; out"


IN_FORCE = {"expires": 3_600_000}
"""What the policy of each sample queue sets."""


def catalogue_commands() -> Iterator[CatalogueCommand]:
    """Every command of every page, in the order of the pages."""
    for rule, page in pages().items():
        for number, step in enumerate(page.steps, 1):
            if isinstance(step, StepTemplate) and step.command:
                yield CatalogueCommand(rule, f"{rule}:{number}", step)


def sample_facts(command: CatalogueCommand, names: Names) -> dict[str, Any]:
    """Facts of a finding about these objects, by the names that commands use."""

    def queue(name: str, kind: str = "classic") -> dict[str, Any]:
        return {
            "vhost": names.vhost,
            "name": name,
            "type": kind,
            "node": names.node,
            "policy": None,
            "policy_definition": IN_FORCE,
            "operator_policy": None,
            "operator_definition": {},
        }

    here = {command.rule, command.place}
    classic, quorum = queue(names.classic), queue(names.quorum, "quorum")
    facts: dict[str, Any] = {
        "management": names.management,
        "version": names.version,
        "subject": {"kind": "node", "name": names.node, "vhost": None, "node": names.node},
        "vhost": names.vhost,
        "policy": "keep (short)",
        "plugin": "rabbitmq_management",
        "last_exchanges": [names.exchange],
        "vhosts": [names.vhost],
        "user": names.user,
        "node": names.node,
        "nodes": [{"node": names.node}],
        "other_node": names.node,
        "free_nodes": [names.node],
        "missing_nodes": [names.node],
        "smaller_side": [names.node],
        "connection": names.connection,
        "open_connections": [names.connection],
        "queue": classic,
        "largest_queue": classic,
        "lowered_from_bytes": 2**33,
        "raised_from_bytes": 50_000_000,
        "raised_to_bytes": 2**46,
        "last_queue": classic,
        "closing": classic,
        "first": quorum,
        "first_queue": quorum,
        "sources": [names.quorum],
        "quorum_queue": quorum,
        "queue_count": 1,
        "exchange": names.exchange,
        "exchanges": [names.exchange],
        "refused_exchanges": [names.exchange],
        "bound": [names.classic],
        "others_bound": [names.exchange],
        "bound_with_other_keys": [names.classic],
        "shovels": ["to the other site"],
        "shovel_moves": [{"name": "to the other site", "vhost": names.vhost, "dynamic": True}],
        "dead_ends": [names.exchange],
        "alternate": names.exchange,
        "alternate_type": "topic",
        "exchange_type": "headers",
        "dead_end_type": "topic",
        "away": [names.classic],
        "fed": [names.classic],
        "session": {"client_id": "it's a meter"},
        "fast_reply": False,
        "properties": [],
        "queue_bytes": 0,
        "mqtt_bindings": [{"destination_type": "queue", "destination": names.classic, "correct_key": "it's.*"}],
        "paths": [
            {
                "first_exchange": names.exchange,
                "first_key": "it's.#",
                "destination_type": "queue",
                "destination": names.classic,
            }
        ],
        "passes_to": names.exchange,
        "shadowed": {"name": "dlx", "in_force": "it's lazy", "keys": {"dead-letter-exchange": names.exchange}},
        "source_type": "topic",
        "starved": None,
        "removed": [
            {"source": names.exchange, "destination_type": "queue", "destination": names.classic, "routing_key": key}
            for key in ("it's new", "a b", "#")
        ],
        "outage": {"vhost": names.vhost, "nodes": [names.node], "node": names.node, "seconds": 12.0},
        "max_length_bytes_raised": 10_000_000,
        "hoarder": {"connection": names.connection},
        "owner": {"connection": names.connection},
        "holder": {"connection": names.connection},
        "stuck_consumer": {"client": "billing", "connection": names.connection, "port": 50001},
        "first_consumer": {"connection": names.connection, "port": 50001},
        "holders": [{"user": names.user}],
        "scope": "vhost",
        "of": names.vhost,
        "name": "to the other site",
        "link": "to the other site",
        "links": ["to the other site"],
        "limits": {"max-length": 1000},
        "raised_limits": {"max-length": 2000},
        "target": classic,
        "longer_ttl_milliseconds": 3_600_000,
        "longer_limit": 500,
        "delay": {"queue": classic, "longer_limit": 500},
        "cut": {"policy": "it's mine", "by_operator": False},
        "full": {"queue": classic, "longer_limit": 500},
        "dead_letter_arguments": {"x-queue-type": "classic", "x-dead-letter-exchange": ""},
        "suggested_limit": 100,
        "warning_from_connections": 100,
        "pattern": "answers.*",
        "examples": ["answers.1"],
        "suggested_bytes": 1_000_000_000,
        "new": {"vhosts": [names.vhost], "count": 3, "prefix": "tmp."},
    }
    if here & ABOUT_A_VHOST:
        facts["subject"] = {"kind": "vhost", "name": names.vhost, "vhost": names.vhost, "node": None}
    if here & ABOUT_A_CONNECTION:
        facts["subject"] = {"kind": "connection", "name": names.connection, "vhost": names.vhost, "node": names.node}
    if here & {"probe-message-lost"}:
        facts["subject"] = {"kind": "probe", "name": "rtt", "vhost": names.vhost, "node": None}
    if here & ABOUT_A_QUORUM_QUEUE:
        facts["queue"] = quorum
    if here & ABOUT_AN_UNUSED_QUEUE or "--if-unused" in (command.step.command or ""):
        facts["queue"] = queue(names.unused)
    if here & ABOUT_AN_EXCLUSIVE_QUEUE:
        facts["queue"] = queue(names.exclusive)
    if command.rule == "stream-replica-missing":
        facts["first_queue"] = queue(names.stream, "stream")
    if command.rule in {"dlx-missing", "dead-letters-held"}:
        facts |= {"exchange": "dead & gone", "new_type": "direct", "new_queue": "dead letters", "new_key": "it's new"}
        facts["routing_key"] = "it's new"
    if command.rule == "dlx-missing" and command.step.when in {"bound", "bound_with_other_keys | length == 1"}:
        # There the exchange exists.
        facts["exchange"] = names.exchange
    if str(command.step.when).endswith("and away | mqtt_clients"):
        facts["away"] = ["mqtt-subscription-it's a meterqos1"]
    if command.rule == "connection-limit-reached":
        facts["raised_limits"] = {"max-connections": 100}
    if command.rule == "queue-limit-reached":
        facts["raised_limits"] = {"max-connections": 100, "max-queues": 100}
    if command.rule == "connection-limit-reached" and str(command.step.when).startswith('scope == "user"'):
        facts |= {"scope": "user", "of": names.user}
    return facts


def names_of(template: str) -> set[str]:
    """The facts that a template needs."""
    environment = _environment()
    used: set[str] = meta.find_undeclared_variables(environment.parse(template))
    return used - set(environment.globals)


def filled(command: CatalogueCommand, names: Names) -> str:
    """The command for these objects.

    Raises:
        LookupError: there is no sample of a fact that it needs.
    """
    template = command.step.command or ""
    facts = sample_facts(command, names)
    if missing := names_of(template) - set(facts):
        raise LookupError(f"{command.place}: no sample of {', '.join(sorted(missing))}")
    return _command(template, facts)


def meant_for(condition: str | None, version: tuple[int, int] | None) -> bool:
    """Whether a step can be shown for this version: whatever other facts are, its condition on the version holds."""
    if condition is None:
        return True
    output = _environment().parse("{{ " + condition + " }}").find(nodes.Output)
    assert output is not None
    return _may_hold(output.nodes[0], version) is not False


def _may_hold(node: nodes.Node, version: tuple[int, int] | None) -> bool | None:
    """The value of a condition that is known from the version alone; None where it depends on other facts."""
    if isinstance(node, nodes.And | nodes.Or):
        sides = [_may_hold(node.left, version), _may_hold(node.right, version)]
        decides = isinstance(node, nodes.Or)
        return decides if decides in sides else None if None in sides else not decides
    if isinstance(node, nodes.Not):
        value = _may_hold(node.node, version)
        return None if value is None else not value
    if {each.name for each in node.find_all(nodes.Name)} != {"version"}:
        return None
    if isinstance(node, nodes.Test):
        return (version is None) == (node.name == "none")
    assert isinstance(node, nodes.Compare)
    operator, bound = node.ops[0].op, node.ops[0].expr.as_const()
    assert operator in {"lt", "gteq"}, operator
    return version is not None and (version < bound) == (operator == "lt")


class Objects:
    """A virtual host with everything that commands are about, and a client that consumes in it.

    Args:
        lab: the broker; its first node is used.
    """

    def __init__(self, lab: Any) -> None:
        node = lab.nodes[0]
        url = urlsplit(node.management)
        major, minor = map(int, lab.broker.split(".")[:2])
        self.credentials = f"{url.username}:{url.password}"
        self._amqp = parse_amqp(node.amqp)
        self._http = requests.Session()
        self._http.auth = (url.username or "", url.password or "")
        self._connection: pika.BlockingConnection | None = None
        self.names = Names(
            node=node.name,
            management=f"{url.scheme}://{url.hostname}:{url.port}",
            version=(major, minor),
        )

    def make(self) -> None:
        """Remove what is left, and make all objects; the connection then has another name."""
        self.remove()
        vhost, user, names = quote(self.names.vhost, safe=""), quote(self.names.user, safe=""), self.names
        self._call("PUT", f"/users/{user}", {"password": "secret", "tags": ""})
        self._call("PUT", f"/vhosts/{vhost}", {})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._call("PUT", f"/permissions/{vhost}/{user}", everything)
        self._call("PUT", f"/permissions/{vhost}/{self.credentials.split(':')[0]}", everything)
        address = replace(self._amqp, username=names.user, password="secret", vhost=names.vhost)
        self._connection = connect(address, "billing")
        channel = self._connection.channel()
        channel.exchange_declare(names.exchange, "direct", durable=True)
        channel.queue_declare(names.exclusive, exclusive=True)
        channel.basic_qos(prefetch_count=1)
        for name, kind in self._queues().items():
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": kind})
            channel.queue_bind(name, names.exchange, name)
        for name in (names.classic, names.unused, names.quorum, names.stream):
            for _ in range(5):
                channel.basic_publish("", name, b"message", pika.BasicProperties(delivery_mode=2))
        channel.basic_consume(names.classic, lambda *_: None)
        channel.basic_consume(names.quorum, lambda *_: None)
        self.names = replace(names, connection=self._name_of_connection())

    def _queues(self) -> dict[str, str]:
        names = self.names
        return {names.classic: "classic", names.unused: "classic", names.quorum: "quorum", names.stream: "stream"}

    def serve(self) -> None:
        """Answer the heartbeats of the connection."""
        if self._connection is not None:
            self._connection.process_data_events(0)

    def remove(self) -> None:
        """Close the connection and remove the virtual host and the user."""
        if self._connection is not None:
            # A command may have closed it.
            with suppress(pika.exceptions.AMQPError, OSError):
                self._connection.close()
            self._connection = None
        self._call("DELETE", f"/vhosts/{quote(self.names.vhost, safe='')}", missing=True)
        self._call("DELETE", f"/users/{quote(self.names.user, safe='')}", missing=True)

    def _name_of_connection(self) -> str:
        deadline = time.monotonic() + CREATION_SECONDS
        while time.monotonic() < deadline:
            self.serve()
            for each in self._call("GET", "/connections").json():
                if each.get("user") == self.names.user:
                    return str(each["name"])
            time.sleep(0.1)
        raise AssertionError("the management API does not list the connection")

    def _call(self, method: str, path: str, body: Any = None, *, missing: bool = False) -> requests.Response:
        answer = self._http.request(method, f"{self.names.management}/api{path}", json=body, timeout=30)
        if not (missing and answer.status_code == requests.codes.not_found):
            answer.raise_for_status()
        return answer

    def __enter__(self) -> Self:
        self.make()
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()
        self._http.close()


class Shell:
    """A shell in which the command-line tools of RabbitMQ act on the first node of a lab.

    Args:
        control: of the lab.
        folder: for the wrappers of the tools.
        credentials: of an administrator, `user:password`; they replace the `USER` of a command.
    """

    def __init__(self, control: Any, folder: Path, credentials: str) -> None:
        handle = control.handles[0]
        for tool in TOOLS:
            environ = " ".join(f"{key}={shlex.quote(value)}" for key, value in handle.environ.items())
            command = shlex.join(control.broker.command(control.folder, tool))
            wrapper = folder / tool
            wrapper.write_text(f'#!/bin/sh\nexec env -i {environ} {command} "$@"\n')
            wrapper.chmod(0o755)
        self._environ: Mapping[str, str] = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        self._credentials = credentials

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a person pastes it; a part of a pipe that fails, or an HTTP error, is a failure."""
        text = command.replace("curl -u USER", f"curl --fail-with-body -sS -u {self._credentials}")
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            env=self._environ,
            capture_output=True,
            text=True,
            timeout=TOOL_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
