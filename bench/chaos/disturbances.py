"""What breaks: each disturbance begins, is held for some seconds, and ends. Nothing else is repaired by hand."""

import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from bench.chaos.scene import NODES, PARTS, POLL_SECONDS, SPOOL_BYTES, ChaosScene
from bench.exporting import probe_pid
from lab.control import ALARM_WATERMARK, USUAL_WATERMARK
from lab.network_link import LinkState

_FLOOD = 150
_SHORTEST_JUMP, _LONGEST_JUMP = 120.0, 6 * 3600.0
"""Seconds. A jump by minutes is as likely as one by hours."""

_REQUEST = b"GET /metrics HTTP/1.1\r\nHost: %s\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One kind.

    Attributes:
        hold: starts it, and ends it when the block ends.
        hides: what the exporter cannot reach meanwhile: "management", "amqp", "bucket".
    """

    name: str
    hold: Callable[[ChaosScene, random.Random], AbstractContextManager[None]]
    hides: frozenset[str] = frozenset()


def _another(dice: random.Random) -> int:
    """Return a node that the exporter does not poll."""
    return dice.randrange(1, NODES)


@contextmanager
def _killed(scene: ChaosScene, nodes: Sequence[int]) -> Iterator[None]:
    """SIGKILL to nodes; afterwards they are started again."""
    for index in nodes:
        scene.lab.kill(index)
    yield
    for index in nodes:
        scene.lab.restart(index)


@contextmanager
def _restarted_application(scene: ChaosScene, dice: random.Random) -> Iterator[None]:
    index = _another(dice)
    scene.lab.ctl(index, "stop_app")
    yield
    scene.lab.ctl(index, "start_app")


@contextmanager
def _frozen(scene: ChaosScene, index: int) -> Iterator[None]:
    process = scene.lab.processes[index]
    process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.signal(signal.SIGCONT)


@contextmanager
def _partitioned(scene: ChaosScene, index: int) -> Iterator[None]:
    """A network partition: a node and the others cannot connect, because it has another cookie for each of them."""
    part = "[begin erlang:set_cookie(N, partitioned), erlang:disconnect_node(N) end || N <- nodes()]."
    join = "[erlang:set_cookie(N, erlang:get_cookie()) || N <- rabbit_nodes:list_members()]."
    scene.lab.ctl(index, "eval", part)
    try:
        yield
    finally:
        scene.lab.ctl(index, "eval", join)


@contextmanager
def _memory_alarm(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.lab.ctl(0, "set_vm_memory_high_watermark", ALARM_WATERMARK)
    try:
        yield
    finally:
        scene.lab.ctl(0, "set_vm_memory_high_watermark", USUAL_WATERMARK)


@contextmanager
def _link(name: str, state: LinkState, scene: ChaosScene, _: random.Random) -> Iterator[None]:
    link = scene.links[name]
    link.turn(state)
    try:
        yield
    finally:
        link.turn(LinkState.OPEN)


@contextmanager
def _disk_full(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    filler = scene.spool / "filler"
    with filler.open("wb") as file, suppress(OSError):
        for _number in range(SPOOL_BYTES // 65_536 + 1):
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
    pid = probe_pid(scene.service("exporter").process.pid)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    yield


@contextmanager
def _new_password(scene: ChaosScene, _: random.Random) -> Iterator[None]:
    scene.rotate_password()
    yield


@contextmanager
def _jumped_clock(sign: int, scene: ChaosScene, dice: random.Random) -> Iterator[None]:
    """The wall clock of the exporter and its probes jumps, and jumps to the right time at the end."""
    scene.clock.jump(sign * round(_SHORTEST_JUMP * (_LONGEST_JUMP / _SHORTEST_JUMP) ** dice.random()))
    try:
        # What was read before the jump and what was read after it are compared.
        time.sleep(2 * POLL_SECONDS)
        yield
    finally:
        scene.clock.jump(0.0)


@contextmanager
def _jumped_unread(scene: ChaosScene, dice: random.Random) -> Iterator[None]:
    """The clock jumps while nothing can be read, so that all ages grow through the jump."""
    with (
        _link("management", LinkState.SILENT, scene, dice),
        _jumped_clock(dice.choice((1, -1)), scene, dice),
    ):
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


_BOTH = frozenset({"management", "amqp"})


def disturbances() -> tuple[Disturbance, ...]:
    """Every kind."""
    links = [
        Disturbance(
            f"{name} link {state.value}",
            partial(_link, name, state),
            frozenset({name}) if state in (LinkState.SILENT, LinkState.CUT) else frozenset(),
        )
        for name in ("management", "amqp", "bucket")
        for state in LinkState
        if state is not LinkState.OPEN
    ]
    parts = [Disturbance(f"{name} killed", partial(_killed_part, name)) for name in PARTS]
    return (
        Disturbance("node killed", lambda scene, dice: _killed(scene, (_another(dice),))),
        Disturbance("polled node killed", lambda scene, _: _killed(scene, (0,)), _BOTH),
        Disturbance("two nodes killed", lambda scene, _: _killed(scene, range(1, NODES))),
        Disturbance("node stopped", _restarted_application),
        Disturbance("node frozen", lambda scene, dice: _frozen(scene, _another(dice))),
        Disturbance("polled node frozen", lambda scene, _: _frozen(scene, 0), _BOTH),
        Disturbance("node partitioned", lambda scene, dice: _partitioned(scene, _another(dice))),
        Disturbance("polled node partitioned", lambda scene, _: _partitioned(scene, 0)),
        Disturbance("memory alarm", _memory_alarm),
        *links,
        *parts,
        Disturbance("probes killed", _killed_probes),
        Disturbance("disk full", _disk_full),
        Disturbance("password changed", _new_password),
        Disturbance("clock jumped forward", partial(_jumped_clock, 1)),
        Disturbance("clock jumped back", partial(_jumped_clock, -1)),
        Disturbance("clock jumped, polls silent", _jumped_unread, frozenset({"management"})),
        Disturbance("exporter flooded", lambda scene, _: _flood(scene.exporter)),
        Disturbance("page flooded", lambda scene, _: _flood(scene.page)),
    )
