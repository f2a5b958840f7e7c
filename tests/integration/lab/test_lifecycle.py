import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pika
import pytest
import requests

from ackscope.errors import BrokerError
from lab.brokers import minor
from lab.cluster import start_lab
from lab.node import amqp_opens

pytestmark = pytest.mark.integration

VERSIONS = ["3.10", "4.3"]
DURABLE = pika.BasicProperties(delivery_mode=2)


def group_members(groups):
    """Pids of the running processes in any of these process groups."""
    members = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        # What has ended and waits for init to collect it does not run.
        if fields[0] not in {"Z", "X"} and int(fields[2]) in groups:
            members.append(int(entry.name))
    return members


@pytest.mark.parametrize("version", VERSIONS)
def test_a_node_keeps_its_data_and_ports_through_a_kill_and_leaves_nothing(
    version, channel_of, processes_of, wait_until
):
    """Start, publish, SIGKILL, start again, read, stop: then no process, no folder, no mount is left."""
    with start_lab(version) as lab:
        node = lab.nodes[0]
        channel = channel_of(node)
        channel.confirm_delivery()
        # Not a quorum queue: declared seconds before a SIGKILL it comes back without a leader (3.10) or empty (4.3).
        channel.queue_declare("kept", durable=True, arguments={"x-queue-type": "classic"})
        channel.basic_publish("", "kept", b"here still", DURABLE)
        if version == "3.10":
            # That the queue exists is in a buffer of Mnesia's log for two seconds; its message was confirmed.
            lab.ctl(0, "eval", "ok = mnesia:sync_log().")

        assert version == minor(lab.broker)
        assert lab.broker in lab.ctl(0, "version")
        assert requests.get(f"{node.prometheus}/metrics", timeout=10).ok

        lab.kill(0)

        assert not amqp_opens(node.amqp)

        lab.restart(0)
        body = wait_until(lambda: channel_of(node).basic_get("kept", auto_ack=True)[2], "the message is back")

        assert b"here still" == body
        assert node == lab.nodes[0]

        groups = {process.pid for process in lab.processes} | {lab.epmd.pid}
        assert processes_of(lab.folder)

    assert [] == processes_of(lab.folder)
    assert [] == group_members(groups)
    assert not lab.folder.exists()
    assert str(lab.folder) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.parametrize("version", VERSIONS)
def test_every_listener_is_on_loopback(version, lab_310, lab_43):
    """A throwaway broker with guest/guest is not offered to the network."""
    lab = {"3.10": lab_310, "4.3": lab_43}[version]
    pids = {process.pid for process in lab.processes} | {lab.epmd.pid}

    listening = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True).stdout.splitlines()
    ours = [line.split()[3] for line in listening if any(f"pid={pid}," in line for pid in pids)]

    assert len(ours) >= 5
    assert [] == [address for address in ours if not address.startswith(("127.0.0.1:", "[::1]:"))]


def test_nothing_outlives_a_parent_that_was_killed(processes_of, wait_until):
    """SIGKILL of whoever started a tied lab ends its nodes; the next lab wipes what they kept."""
    code = """
        import sys
        from lab.cluster import start_lab
        with start_lab("4.3") as lab:
            print(lab.folder, flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        folder = Path(parent.stdout.readline().strip())

        assert folder.exists()
        assert processes_of(folder)

        os.kill(parent.pid, signal.SIGKILL)

    wait_until(lambda: not processes_of(folder), "every process is gone", 20)

    with start_lab("4.3"):
        assert not folder.exists()


def test_a_cluster_of_three_forms_and_takes_a_node_back(channel_of, queues, wait_until):
    """A quorum queue spans three nodes; one that was killed comes back to its cluster."""
    with start_lab("4.3", nodes=3) as lab:
        channel_of(lab.nodes[0]).queue_declare("spread", durable=True, arguments={"x-queue-type": "quorum"})

        def online():
            # The other node may not know the queue yet, and its answer may hang while it asks a node that just died.
            with suppress(requests.RequestException):
                return len(queues(lab.nodes[1]).get("spread", {}).get("online", []))
            return None

        wait_until(lambda: 3 == online(), "three members online")
        lab.kill(2)
        wait_until(lambda: 2 == online(), "two members online")
        lab.restart(2)
        wait_until(lambda: 3 == online(), "three members again")

        assert ["lab1@localhost", "lab2@localhost", "lab3@localhost"] == [node.name for node in lab.nodes]


def test_a_failing_tool_is_reported_in_one_line(lab):
    """With the node and the tool's own words."""
    with pytest.raises(BrokerError) as caught:
        lab.ctl(0, "no_such_command")

    assert str(caught.value).startswith("rabbitmqctl no_such_command on lab1@localhost: ")
    assert 1 == len(str(caught.value).splitlines())


def test_a_node_that_cannot_start_shows_its_log(tmp_path, processes_of, monkeypatch):
    """Not a bare timeout; and nothing of it stays."""
    monkeypatch.setattr("lab.node._CONFIG", "no_such_key = 1\n")

    with pytest.raises(BrokerError) as caught:
        start_lab("3.10", folder=tmp_path / "lab")

    assert str(caught.value).startswith("lab1@localhost exited while starting; first errors of its log:\n")
    assert "no_such_key" in str(caught.value)
    assert [] == processes_of(tmp_path / "lab")
    assert not (tmp_path / "lab").exists()
