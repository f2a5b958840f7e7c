import json
from pathlib import Path

import pytest

from ackscope.__main__ import main
from lab.command import describe
from lab.faults import FAULTS
from lab.node import LabNode
from lab.processes import Process
from lab.state import State


@pytest.fixture(autouse=True)
def own_state(monkeypatch, tmp_path):
    """No lab of the user is touched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        pytest.param(
            ["fault", "stuk-consumer"],
            "ackscope lab: unknown fault 'stuk-consumer', did you mean 'stuck-consumer'?",
            id="unknown-fault",
        ),
        pytest.param(
            ["fault", "zzz"],
            "ackscope lab: unknown fault 'zzz'; see `ackscope lab fault --list`",
            id="far-fault",
        ),
        pytest.param(
            ["fault", "stuck-consumer"],
            "ackscope lab: no lab is running; start one with: ackscope lab up",
            id="no-lab",
        ),
        pytest.param(
            ["fault"],
            "ackscope lab: fault: name missing; see `ackscope lab fault --list`",
            id="no-name",
        ),
        pytest.param(["up", "--nodes", "5"], "ackscope lab: invalid number of nodes 5; a lab has 1 to 3", id="nodes"),
        pytest.param(
            ["up", "--broker", "4.2"],
            "ackscope lab: unknown broker '4.2', did you mean '4.3'?; known: distro, 3.10, 4.0, 4.3",
            id="broker",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_3(words, line, capsys):
    """What, and what to do instead; nothing on stdout."""
    code = main(["lab", *words])
    captured = capsys.readouterr()

    assert 3 == code
    assert line + "\n" == captured.err
    assert "" == captured.out


def test_down_without_a_lab_says_so(capsys):
    """A repeated `down` is no error."""
    code = main(["lab", "down"])

    assert 0 == code
    assert "No lab is running.\n" == capsys.readouterr().out


def test_down_starts_over_after_a_broken_state(tmp_path, capsys):
    """The way out that the message of a broken file names."""
    place = tmp_path / "ackscope/lab"
    place.mkdir(parents=True)
    (place / "state.json").write_text("{")

    assert 0 == main(["lab", "down"])
    assert not (place / "state.json").exists()


def test_faults_are_listed(capsys):
    """Each with the rule that should name it."""
    code = main(["lab", "fault", "--list", "--json"])
    listed = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert list(FAULTS) == [item["fault"] for item in listed]
    assert all(item["summary"] and item["rule"] for item in listed)
    assert {"stuck-consumer": "consumers", "disk-alarm": "nodes"} == {
        item["fault"]: item["group"] for item in listed if item["fault"] in {"stuck-consumer", "disk-alarm"}
    }


def test_human_output_fits_a_terminal(capsys, monkeypatch):
    """80 columns. Commands are shown as they were called."""
    monkeypatch.setattr("sys.argv", [".venv/bin/ackscope"])
    monkeypatch.setenv("PATH", "/usr/bin")
    node = LabNode(
        name="lab1@localhost",
        amqp="amqp://guest:guest@127.0.0.1:32000",
        management="http://guest:guest@127.0.0.1:32001",
        prometheus="http://127.0.0.1:32002",
    )
    state = State(broker="4.3.6", nodes=(node,) * 3, processes=(), epmd=None, workload=Process(1, 1))
    text = describe(state, Path("/home/someone/.local/state/ackscope/lab/run/bin"))
    main(["lab", "fault", "--list"])

    assert "Stop it:        .venv/bin/ackscope lab down" in text
    lines = [*text.splitlines(), *capsys.readouterr().out.splitlines()]

    assert max(len(line) for line in lines) <= 80
    assert "RabbitMQ 4.3.6 is running, 3 nodes in one cluster, with a sample workload." == lines[0]
