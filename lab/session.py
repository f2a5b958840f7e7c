"""A lab that keeps running after the command that started it: up, fault, down."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import orjson

from ackscope.errors import BrokerError, DataError, UsageError
from lab.brokers import minor
from lab.cluster import start_lab, stop_processes
from lab.faults.fault import FaultSpec
from lab.node import NOTHING
from lab.processes import Process, end, marked, start
from lab.state import Place, State, forget, load, save

_IN_EFFECT_WITHIN = 30.0
_END_WITHIN = 10.0
_POLL = 0.05


def up(place: Place, broker: str, nodes: int, *, workload: bool) -> State:
    """Start a lab that keeps running after this process.

    Raises:
        UsageError: a lab is already running, or the broker is unknown.
        MissingPart: this version is not available on this machine.
        Unreachable: a node did not become ready; nothing is left running.
    """
    if marked(place.folder):
        state = load(place)
        what = f"a lab with RabbitMQ {state.broker}" if state else "a lab"
        raise UsageError(f"{what} is already running; stop it with: ackscope lab down")
    # The state is from before a reboot: none of its processes is running.
    stop_processes(place.folder, [], None)
    forget(place)
    lab = start_lab(broker, nodes, tied=False, folder=place.folder)
    try:
        state = State(
            broker=lab.broker,
            nodes=tuple(lab.nodes),
            processes=tuple(lab.processes),
            epmd=lab.epmd,
            workload=_start_workload(place, lab.nodes[0].amqp) if workload else None,
        )
        save(place, state)
    except BaseException:
        lab.stop()
        raise
    return state


def fault(place: Place, spec: FaultSpec) -> dict[str, Any]:
    """Inject a fault into the running lab, and return its announcement once it is in effect.

    Raises:
        UsageError: no lab is running, the fault is already in effect, or it is not available for this lab.
        BrokerError: it did not take effect.
    """
    state = load(place)
    if state is None or not any(process.alive() for process in state.processes):
        raise UsageError("no lab is running; start one with: ackscope lab up")
    _must_fit(spec, state)
    name = spec.name
    if name in state.faults and state.faults[name].alive():
        raise UsageError(f"fault {name} is already in effect; stop it and the lab with: ackscope lab down")
    output = place.folder / f"fault-{name}.log"
    output.unlink(missing_ok=True)
    node = state.nodes[0]
    lab = ["--lab", str(place.folder)]
    words = ["lab.faults", name, "--amqp", node.amqp, "--management", node.management, *lab]
    process = _start_module(place, words, output)
    state.faults[name] = process
    save(place, state)
    deadline = time.monotonic() + _IN_EFFECT_WITHIN
    while (said := _announcement(output)) is None:
        if not process.alive() or time.monotonic() > deadline:
            end([process], _END_WITHIN)
            raise BrokerError(f"fault {name} did not take effect: {_last_line(output)}")
        time.sleep(_POLL)
    return said


def _must_fit(spec: FaultSpec, state: State) -> None:
    if minor(state.broker) not in spec.versions:
        others = " or ".join(spec.versions)
        raise UsageError(
            f"fault {spec.name} is not available for RabbitMQ {state.broker}; start a lab with --broker {others}"
        )
    if len(state.nodes) < spec.nodes:
        raise UsageError(f"fault {spec.name} needs {spec.nodes} nodes; start a lab with --nodes {spec.nodes}")
    if spec.extra != NOTHING:
        raise UsageError(f"fault {spec.name} needs a broker that is started for it: ackscope demo --fault {spec.name}")


def down(place: Place) -> bool:
    """Stop faults, workload and nodes, and delete their data. Returns False if nothing was running.

    Raises:
        MissingPart: some processes could not be stopped.
    """
    ran = bool(marked(place.folder))
    try:
        state = load(place)
    except DataError:
        # Every process of the lab has its mark.
        state = None
    if state is not None:
        clients = [*state.faults.values(), *([state.workload] if state.workload else [])]
        end(clients, _END_WITHIN)
        stop_processes(place.folder, list(state.processes), state.epmd)
    else:
        stop_processes(place.folder, [], None)
    forget(place)
    return ran


def _start_workload(place: Place, amqp: str) -> Process:
    return _start_module(place, ["lab.workload", "--amqp", amqp], place.folder / "workload.log")


def _start_module(place: Place, words: list[str], output: Path) -> Process:
    return start(
        [sys.executable, "-m", *words], environ=dict(os.environ), folder=place.folder, output=output, tied=False
    )


def _announcement(output: Path) -> dict[str, Any] | None:
    for line in _lines(output):
        if line.startswith("{"):
            document: dict[str, Any] = orjson.loads(line)
            return document
    return None


def _last_line(output: Path) -> str:
    lines = [line for line in _lines(output) if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def _lines(output: Path) -> list[str]:
    text = output.read_text(errors="replace") if output.exists() else ""
    return text.splitlines() if text.endswith("\n") else text.splitlines()[:-1]
