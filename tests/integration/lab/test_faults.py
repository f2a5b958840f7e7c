import json
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import quote

import pytest
import requests

from lab.cluster import start_lab

pytestmark = pytest.mark.integration


@pytest.fixture
def held(lab, queues):
    """Hold a fault against the shared broker; afterwards its queue is gone."""

    @contextmanager
    def _held(name):
        node = lab.nodes[0]
        command = [sys.executable, "-m", "lab.faults", name, "--amqp", node.amqp, "--management", node.management]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            said = json.loads(process.stdout.readline())

            assert {
                "fault": name,
                "rule": name,
                "subject": {"kind": "queue", "vhost": "/", "name": f"fault.{name}"},
            } == said

            yield process
            process.stdin.close()

            assert 0 == process.wait(60)
        assert f"fault.{name}" not in queues(node)

    return _held


def stats(queue):
    """The counters of a queue; empty while it has none."""
    return queue.get("message_stats", {})


def test_a_stuck_consumer_holds_its_prefetch(lab, held, queues, client_names, wait_until):
    """It worked; now it holds ten, acks nothing, and messages pile up behind it on a channel that is idle."""
    node = lab.nodes[0]
    with held("stuck-consumer"):
        first = wait_until(
            lambda: (q := queues(node)["fault.stuck-consumer"]).get("messages_ready") and stats(q) and q, "a backlog"
        )
        later = wait_until(
            lambda: (q := queues(node)["fault.stuck-consumer"])["messages_ready"] >= first["messages_ready"] + 20 and q,
            "a growing backlog",
        )

        assert 10 == first["messages_unacknowledged"] == later["messages_unacknowledged"]
        assert 15 == stats(later)["ack"]
        assert 1 == later["consumers"]
        assert "fault-stuck-consumer" in client_names(node)

        channels = requests.get(f"{node.management}/api/channels", timeout=10).json()
        consuming = [channel for channel in channels if channel["messages_unacknowledged"] == 10]

        assert [True] == ["idle_since" in channel for channel in consuming]


def test_a_requeue_loop_redelivers_without_end(lab, held, queues, wait_until):
    """Redeliveries far above one a second, no acks, three messages all the time, on every version."""
    node = lab.nodes[0]
    with held("requeue-loop"):

        def looping(before=0):
            # The queue reports what it holds, the channel what was redelivered, each in its own time. A hundred a
            # second; a broker that gets little of a crowded machine does a fraction of it.
            queue = queues(node)["fault.requeue-loop"]
            rate = stats(queue).get("redeliver_details", {}).get("rate", 0)
            return rate > 5 and stats(queue)["redeliver"] > before and queue["messages"] and queue

        first = wait_until(looping, "a loop", 120)
        later = wait_until(lambda: looping(stats(first)["redeliver"] + 20), "a loop that goes on", 120)

        assert 3 == first["messages"] == later["messages"]
        assert 0 == stats(later).get("ack", 0)


def test_an_overflow_nacks_its_publisher(lab, held, queues, wait_until):
    """The queue is full, it has a consumer, and publishes are not confirmed while none is in flight."""
    node = lab.nodes[0]
    with held("pub-nacked-overflow"):

        def nacked():
            for channel in requests.get(f"{node.management}/api/channels", timeout=10).json():
                counters = channel.get("message_stats", {})
                nacks = counters.get("publish", 0) - counters.get("confirm", 0)
                if channel.get("confirm") and nacks - channel["messages_unconfirmed"] > 20:
                    return counters
            return None

        counters = wait_until(nacked, "nacks go on")

        def full():
            queue = queues(node)["fault.pub-nacked-overflow"]
            # The broker refreshes both numbers at its own time.
            return queue.get("messages_ready", 0) >= 9 and 1 == queue.get("consumers")

        assert wait_until(full, "a full queue with a consumer")
        assert counters["confirm"] < counters["publish"]


def test_a_fault_ends_with_sigterm_too(lab, held):
    """As `lab down` ends it."""
    with held("requeue-loop") as process:
        process.terminate()

        assert 0 == process.wait(20)


def sessions(node, container):
    """The AMQP 1.0 sessions of the connection with this container id."""
    for connection in requests.get(f"{node.management}/api/connections", timeout=10).json():
        if connection.get("container_id") == container:
            name = quote(connection["name"], safe="")
            return requests.get(f"{node.management}/api/connections/{name}/sessions", timeout=10).json()
    return []


def test_an_amqp10_consumer_that_never_settles_is_named(lab_43, queues, wait_until):
    """The broker counts neither deliveries nor acknowledgements of it; its session tells both."""
    node, name = lab_43.nodes[0], "amqp10-never-settles"
    command = [sys.executable, "-m", "lab.faults", name, "--amqp", node.amqp, "--management", node.management]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert "stuck-consumer" == json.loads(process.stdout.readline())["rule"]

        (session,) = sessions(node, f"fault-{name}")
        (link,) = session["outgoing_links"]

        assert link["delivery_count"] == session["outgoing_unsettled_deliveries"] >= 30
        assert link["credit"] > 0
        assert "message_stats" not in wait_until(lambda: queues(node).get(f"fault.{name}"), "the queue")

        def reported():
            look = [sys.executable, "-m", "ackscope", "diagnose", "--management", node.management, "--json"]
            found = json.loads(subprocess.run(look, capture_output=True, text=True, check=False).stdout)["findings"]
            return next(
                (each for each in found if each["rule"] == "stuck-consumer" and each["severity"] == "critical"), None
            )

        finding = wait_until(reported, "a critical finding", 180)

        assert f"fault.{name}" == finding["subject"]["name"]
        assert [f"fault-{name}"] == finding["involved"]["clients"]
        process.stdin.close()

        assert 0 == process.wait(60)
    assert f"fault.{name}" not in queues(node)


def test_an_amqp10_consumer_without_credit_is_narrowed_down_on_4_0(wait_until):
    """That version reports neither its session nor its connection: the finding lists the candidates."""
    name = "amqp10-no-credit"
    with start_lab("4.0") as lab:
        node = lab.nodes[0]
        command = [sys.executable, "-m", "lab.faults", name, "--amqp", node.amqp, "--management", node.management]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            (peer,) = json.loads(process.stdout.readline())["peers"]

            def reported():
                look = [sys.executable, "-m", "ackscope", "diagnose", "--management", node.management, "--json"]
                done = subprocess.run(
                    [*look, "--prometheus", node.prometheus], capture_output=True, text=True, check=False
                )
                found = json.loads(done.stdout)["findings"]
                return next((each for each in found if each["rule"] == "consumer-without-credit"), None)

            finding = wait_until(reported, "a finding", 180)
            process.stdin.close()

            assert 0 == process.wait(60)
    assert f"fault.{name}" == finding["subject"]["name"]
    assert (2, []) == (len(finding["involved"]["one_of"]), finding["involved"]["connections"])
    assert any(each.startswith(f"{peer} -> ") for each in finding["involved"]["one_of"])
