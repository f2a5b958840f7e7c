import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture
def ackscope(tmp_path):
    """The command, as a user runs it, with a state directory of its own; the lab is ended afterwards."""
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    def _run(*words):
        return subprocess.run(
            [sys.executable, "-m", "ackscope", *words], env=environ, capture_output=True, text=True, check=False
        )

    yield _run
    _run("lab", "down")


@pytest.mark.parametrize("version", ["distro", "4.3"])
def test_a_lab_outlives_its_command_until_it_is_put_down(version, ackscope, tmp_path, queues, processes_of, wait_until):
    """Up with JSON, a second up refused, a fault in effect, down: nothing is left."""
    started = ackscope("lab", "up", "--broker", version, "--workload", "--json")

    assert "" == started.stderr
    assert 0 == started.returncode

    document = json.loads(started.stdout)

    assert {"broker", "nodes"} == set(document)
    assert [{"name", "amqp", "management", "prometheus"}] == [set(node) for node in document["nodes"]]

    class Reached:
        management = document["nodes"][0]["management"]

    wait_until(lambda: "shop.orders" in queues(Reached), "the shop is open")
    again = ackscope("lab", "up")

    assert 3 == again.returncode
    assert (
        f"ackscope lab: a lab with RabbitMQ {document['broker']} is already running; stop it with: ackscope lab down\n"
        == again.stderr
    )

    broken = ackscope("lab", "fault", "requeue-loop", "--json")

    assert "fault.requeue-loop" == json.loads(broken.stdout)["subject"]["name"]
    assert "fault.requeue-loop" in queues(Reached)
    assert 3 == ackscope("lab", "fault", "requeue-loop").returncode

    ended = ackscope("lab", "down")

    assert (0, "The lab was stopped and its data deleted.\n") == (ended.returncode, ended.stdout)
    assert [] == processes_of(tmp_path)
    assert ["lock"] == [path.name for path in (tmp_path / "ackscope/lab").iterdir()]
    assert "No lab is running.\n" == ackscope("lab", "down").stdout


def test_a_lab_has_as_many_nodes_as_requested(ackscope):
    """Each with addresses of its own."""
    started = ackscope("lab", "up", "--broker", "4.3", "--nodes", "3", "--json")

    assert 0 == started.returncode, started.stderr
    assert 3 == len({node["amqp"] for node in json.loads(started.stdout)["nodes"]})


def test_a_lab_whose_node_died_can_still_be_put_down(ackscope, tmp_path, processes_of):
    """The port mapper and the workload of it are ended as well."""
    document = json.loads(ackscope("lab", "up", "--workload", "--json").stdout)
    state = json.loads((tmp_path / "ackscope/lab/state.json").read_text())
    os.kill(state["processes"][0]["pid"], 9)

    refused = ackscope("lab", "up")

    assert document["broker"] in refused.stderr
    assert 0 == ackscope("lab", "down").returncode
    assert [] == processes_of(tmp_path)
