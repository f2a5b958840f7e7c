"""What breaks: each disturbance begins, is held for some seconds, and ends; nothing else is repaired by hand."""

import os
import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

import psutil

from bench.chaos.link import LinkState
from bench.chaos.scene import LANDING_BYTES, NODES, ChaosScene

_TINY_WATERMARK, _WATERMARK = "0.00001", "0.6"
_FLOOD = 150
_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One kind.

    Attributes:
        what: for the table.
        hold: starts it, and ends it when the block ends.
        hides: sources of which the exporter cannot read anything meanwhile: "management", "amqp".
        ends_exporter: whether the exporter is restarted.
    """

    name: str
    what: str
    hold: Callable[[ChaosScene, random.Random], AbstractContextManager[None]]
    hides: frozenset[str] = frozenset()
    ends_exporter: bool = False


@contextmanager
def _killed_node(scene: ChaosScene, dice: random.Random) -> Iterator[None]:
    index = dice.randrange(1, NODES)
    scene.lab.kill(index)
    yield
    scene.lab.restart(index)


@contextmanager
def _killed_polled_node(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.lab.kill(0)
    yield
    scene.lab.restart(0)


@contextmanager
def _restarted_application(scene: ChaosScene, dice: random.Random) -> Iterator[None]:
    index = dice.randrange(1, NODES)
    scene.lab.ctl(index, "stop_app")
    yield
    scene.lab.ctl(index, "start_app")


@contextmanager
def _minority(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    for index in range(1, NODES):
        scene.lab.kill(index)
    yield
    for index in range(1, NODES):
        scene.lab.restart(index)


@contextmanager
def _frozen(scene: ChaosScene, index: int) -> Iterator[None]:
    process = scene.lab.processes[index]
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


def _frozen_other(scene: ChaosScene, dice: random.Random) -> AbstractContextManager[None]:
    return _frozen(scene, dice.randrange(1, NODES))


def _frozen_polled(scene: ChaosScene, _: random.Random) -> AbstractContextManager[None]:
    return _frozen(scene, 0)


@contextmanager
def _memory_alarm(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.lab.ctl(0, "set_vm_memory_high_watermark", _TINY_WATERMARK)
    try:
        yield
    finally:
        scene.lab.ctl(0, "set_vm_memory_high_watermark", _WATERMARK)


@contextmanager
def _link(name: str, state: LinkState, scene: ChaosScene, _: random.Random) -> Iterator[None]:
    link = scene.management if name == "management" else scene.amqp
    link.turn(state)
    try:
        yield
    finally:
        link.turn(LinkState.OPEN)


@contextmanager
def _disk_full(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    filler = scene.landing / "filler"
    with filler.open("wb") as file, suppress(OSError):
        for _number in range(LANDING_BYTES // 65_536 + 1):
            file.write(bytes(65_536))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def _killed_part(name: str, scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.kill(name)
    yield
    scene.start(name)


@contextmanager
def _killed_probes(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    for child in psutil.Process(scene.service("exporter").process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if "probes.child" in child.cmdline():
                os.kill(child.pid, signal.SIGKILL)
    yield


@contextmanager
def _new_password(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.rotate_password()
    yield


@contextmanager
def _flood(address: str) -> Iterator[None]:
    """Clients that ask and never read."""
    host, port = address.split(":")
    clients: list[socket.socket] = []
    try:
        for _ in range(_FLOOD):
            with suppress(OSError):
                client = socket.create_connection((host, int(port)), timeout=1)
                clients.append(client)
                client.sendall(_REQUEST % address.encode() * 20)
        yield
    finally:
        for client in clients:
            client.close()


_MANAGEMENT, _AMQP = frozenset({"management"}), frozenset({"amqp"})
_BOTH = _MANAGEMENT | _AMQP


def disturbances() -> tuple[Disturbance, ...]:
    """Every kind."""
    links = [
        Disturbance(
            f"{name} link {state.value}",
            f"the link from the exporter to {what} is {state.value}",
            partial(_link, name, state),
            frozenset() if state is LinkState.SLOW else frozenset({name}),
        )
        for name, what in (("management", "the management API"), ("amqp", "AMQP"))
        for state in (LinkState.SLOW, LinkState.SILENT, LinkState.CUT)
    ]
    parts = [
        Disturbance(
            f"{name} killed",
            f"SIGKILL to the {name}, which is started again",
            partial(_killed_part, name),
            ends_exporter=name == "exporter",
        )
        for name in ("exporter", "pipeline", "dashboard", "prometheus")
    ]
    return (
        Disturbance("node killed", "SIGKILL to a node, which is started again", _killed_node),
        Disturbance("polled node killed", "the same to the node that is polled", _killed_polled_node, _BOTH),
        Disturbance("node stopped", "rabbitmqctl stop_app and start_app", _restarted_application),
        Disturbance("two nodes killed", "the polled node is left without a majority", _minority),
        Disturbance("node frozen", "SIGSTOP to a node", _frozen_other),
        Disturbance("polled node frozen", "the same to the node that is polled", _frozen_polled, _BOTH),
        Disturbance("memory alarm", "a watermark below what the node uses", _memory_alarm),
        *links,
        *parts,
        Disturbance("probes killed", "SIGKILL to the probe process", _killed_probes),
        Disturbance("disk full", "no space for landing files", _disk_full),
        Disturbance("password changed", "in the broker first, two polls later in the file", _new_password),
        Disturbance(
            "exporter flooded",
            f"{_FLOOD} clients that ask for metrics and do not read",
            lambda scene, _: _flood(scene.exporter),
        ),
        Disturbance("page flooded", "the same to the page", lambda scene, _: _flood(scene.page)),
    )
