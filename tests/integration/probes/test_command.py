"""`ackscope probe` as a user runs it, and the child process as the exporter runs it."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pika
import pytest

from ackscope.address import parse_amqp
from probes.ipc import ProbeTarget, decode, encode_targets
from probes.settings import AmqpSettings, ProbesSettings

pytestmark = pytest.mark.integration


def probe(*words):
    """Run the command; the finished process."""
    command = [sys.executable, "-m", "ackscope", "probe", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def left(lab):
    """Queues of one-shot runs that are on the broker."""
    return [name for name in lab.ctl(0, "list_queues", "name", "--silent").split() if ".once." in name]


SHOWN = {
    "confirm": ("classic: ", "quorum: ", "nacked 0  returned 0  undecided 0  lost 0"),
    "delivery": ("classic: ", "quorum: ", "nacked 0  returned 0  undecided 0  lost 0"),
    "nack": ("acked 0  nacked",),
    "handshake": ("dns ", "tcp ", "open ", "channel "),
    "rtt": ("declare ",),
    "redelivery": ("requeue ", "channel-close ", "dead-letter ", "connection-loss "),
}
"""Words of the report of each probe."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_run_reports_and_leaves_nothing_behind(lab, name):
    """80 columns, every stream and step, outcomes with zeros, own error, verdict; exit 0; no queue remains."""
    done = probe(name, "--amqp", lab.nodes[0].amqp, "--for", "1s")

    assert (0, "") == (done.returncode, done.stderr)
    assert f"{name} probe of RabbitMQ {lab.broker} at 127.0.0.1:" in done.stdout
    for words in (*SHOWN[name], "own error", "measurement "):
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert [] == left(lab)


def test_the_permissions_that_the_guide_names_suffice(lab_43):
    """SECURITY.md says which; a user that has them and no more runs the probes that need most."""
    guide = Path("SECURITY.md").read_text()
    own, write = re.findall(r"`(\^\S+)`", guide)
    lab_43.ctl(0, "add_user", "modest", "secret")
    try:
        lab_43.ctl(0, "set_permissions", "modest", own, write, own)
        url = lab_43.nodes[0].amqp.replace("guest:guest@", "modest:secret@")
        codes = {name: probe(name, "--amqp", url, "--for", "1s").returncode for name in ("confirm", "redelivery")}
    finally:
        lab_43.ctl(0, "delete_user", "modest")

    assert {"confirm": 0, "redelivery": 0} == codes
    assert [] == left(lab_43)


def test_the_prefetch_sweep_recommends_a_value(lab):
    """A row a value, the knee, the formula and the reason; at prefetch 1 exactly one message is held."""
    words = ("prefetch", "--amqp", lab.nodes[0].amqp, "--for", "2s", "--prefetch", "1,10,unlimited")
    done = probe(*words)
    document = json.loads(probe(*words, "--queue-type", "quorum", "--json").stdout)
    (found,) = document["sweeps"]
    first, second, third = found["points"]

    assert (0, "") == (done.returncode, done.stderr)
    assert f"prefetch sweep of RabbitMQ {lab.broker} at 127.0.0.1:" in done.stdout
    for shown in ("classic: round trip", "quorum: round trip", "unlimited", "recommended  prefetch", "by formula"):
        assert shown in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert [1, 10, 0] == [point["prefetch"] for point in found["points"]]
    assert (1, 10) == (first["unacked_max"], second["unacked_max"])
    assert third["unacked_max"] > 100
    assert all(point["messages"] > 0 and 0 < point["busy"] <= 1 for point in found["points"])
    assert found["recommended"] >= found["formula"]
    assert [] == left(lab)


def test_slow_processing_is_part_of_the_sweep(lab_43):
    """A consumer that takes 5 ms per message is no faster than that at any prefetch."""
    words = ("--processing", "5ms", "--for", "1s", "--prefetch", "1,10", "--queue-type", "classic", "--json")
    done = probe("prefetch", "--amqp", lab_43.nodes[0].amqp, *words)
    (found,) = json.loads(done.stdout)["sweeps"]

    assert (0, "") == (done.returncode, done.stderr)
    assert all(0 < point["throughput"] < 1.1 / 0.005 for point in found["points"])
    assert [] == left(lab_43)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(lab_43, number):
    """Ctrl-C, or the end of a container, in the middle of a round."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ackscope", "probe", "redelivery", "--amqp", lab_43.nodes[0].amqp, "--for", "60s"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while len(left(lab_43)) < 4:
            assert time.monotonic() < deadline
        process.send_signal(number)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()

    assert 130 == process.returncode
    assert [] == left(lab_43)


def test_json_is_one_document(lab_43):
    """For scripts: the same figures, in seconds."""
    words = ("--for", "1s", "--rate", "200", "--queue-type", "quorum", "--json")
    done = probe("confirm", "--amqp", lab_43.nodes[0].amqp, *words)
    document = json.loads(done.stdout)
    (stream,) = document["streams"]

    assert done.returncode == 0
    assert document["broker"] == f"RabbitMQ {lab_43.broker}"
    assert stream["outcomes"]["acked"] == stream["messages"] == sum(item["count"] for item in stream["histogram"])
    assert stream["messages"] > 100
    assert 0 < stream["confirm"]["p50"] < 10


def test_nacked_messages_are_exit_code_1(lab_43):
    """Measured, and not well."""
    lab_43.ctl(0, "set_policy", "full", r"^ackscope\.probe\.once\.", '{"max-length":1,"overflow":"reject-publish"}')
    try:
        done = probe("confirm", "--amqp", lab_43.nodes[0].amqp, "--for", "2s", "--queue-type", "classic")
    finally:
        lab_43.ctl(0, "clear_policy", "full")

    assert done.returncode == 1
    assert "nacked 0" not in done.stdout


def test_what_cannot_be_reached_is_one_line_and_exit_code_3(lab_310):
    """Each names host and port and what to do, none shows a password, none a traceback."""
    address = parse_amqp(lab_310.nodes[0].amqp)
    cases = {
        f"amqp://guest:secret-word@{address.where}": "login refused for user 'guest'; check name and password",
        f"amqps://guest:guest@{address.where}": "no TLS on this port",
        f"amqp://guest:guest@{address.where}/nowhere": "virtual host 'nowhere' does not exist",
        "amqp://guest:guest@127.0.0.1:1": "connection refused",
    }
    for url, words in cases.items():
        done = probe("confirm", "--amqp", url)

        assert (3, "") == (done.returncode, done.stdout)
        assert words in done.stderr
        assert "127.0.0.1:" in done.stderr
        assert done.stderr.count("\n") == 1
        assert "secret-word" not in done.stderr


@pytest.fixture
def child():
    """Starts `python -m probes.child`; every one is ended by its own pid."""
    started = []

    def start(line):
        process = subprocess.Popen(
            [sys.executable, "-m", "probes.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        process.stdin.write(line)
        process.stdin.flush()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def until(process, condition):
    """Read batches until one meets the condition; all that were read."""
    batches = []
    deadline = time.monotonic() + 60
    while not (batches and condition(batches)):
        assert time.monotonic() < deadline
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        batches.append(decode(line))
    return batches


def target(cluster, url):
    """A target with probes that are quick to show something."""
    settings = {
        "enabled": ["confirm", "delivery"],
        "prefix": f"ackscope.probe.{cluster}",
        "confirm": {"rate": 50, "streams": ["classic", "quorum"]},
        "delivery": {"rate": 50},
    }
    return ProbeTarget(cluster, AmqpSettings(url=url).servers(), ProbesSettings.model_validate(settings))


def states(batches):
    """The last state of every stream that was reported."""
    return {
        (batch.cluster, outcome.probe, outcome.stream): outcome.state.value
        for batch in batches
        for outcome in batch.outcomes
    }


def test_the_child_measures_every_target_and_a_dead_one_stops_nothing(lab_310, lab_43, child):
    """Two brokers and one that is not there: eight streams run, four tell why they do not."""
    urls = {"old": lab_310.nodes[0].amqp, "new": lab_43.nodes[0].amqp, "gone": "amqp://u:secret-word@127.0.0.1:1"}
    process = child(encode_targets([target(cluster, url) for cluster, url in urls.items()]))

    def complete(batches):
        reported = states(batches)
        return (
            len(reported) == 12
            and list(reported.values()).count("running") == 8
            and "connecting" not in reported.values()
        )

    batches = until(process, complete)
    process.stdin.close()
    started = time.monotonic()
    process.wait(10)
    reasons = {outcome.reason for batch in batches for outcome in batch.outcomes if batch.cluster == "gone"}

    assert {"failed"} == {state for (cluster, *_), state in states(batches).items() if cluster == "gone"}
    assert "127.0.0.1:1: connection refused; is RabbitMQ listening there?" in reasons
    assert b"secret-word" not in process.stderr.read()
    assert time.monotonic() - started < 3
    assert process.returncode == 0
    for lab, cluster in ((lab_310, "old"), (lab_43, "new")):
        mine = [name for name in lab.ctl(0, "list_queues", "name", "--silent").split() if f".probe.{cluster}." in name]
        assert len(mine) == 4
        for name in mine:
            lab.ctl(0, "delete_queue", name)


def test_the_child_ends_on_sigterm(lab_43, child):
    """An orderly stop hands on what is known and loses no message."""
    process = child(encode_targets([target("term", lab_43.nodes[0].amqp)]))
    batches = until(process, lambda batches: sum(len(batch.messages) for batch in batches) > 200)
    process.terminate()
    rest = [decode(line) for line in process.stdout]
    process.wait(10)
    outcomes = {record.outcome.value for batch in (*batches, *rest) for record in batch.messages}
    for name in lab_43.ctl(0, "list_queues", "name", "--silent").split():
        if ".probe.term." in name:
            lab_43.ctl(0, "delete_queue", name)

    assert process.returncode == 0
    assert {"acked"} == outcomes


def test_a_child_without_targets_says_so(child):
    """One line, and the exit code of the contract."""
    process = child(b"rubbish\n")
    _, errors = process.communicate(timeout=30)

    assert process.returncode == 3
    assert errors.count(b"\n") == 1
    assert b"expected one JSON line" in errors


def mine(lab, prefix):
    """Queues of a prefix that are on the broker."""
    return {name for name in lab.ctl(0, "list_queues", "name", "--silent").split() if name.startswith(f"{prefix}.")}


def test_killed_children_leave_no_more_than_one_that_runs_and_a_sweep_takes_it(lab_43, child):
    """Started with a node of its own name and killed, twice: the same queues each time; swept, none is left."""
    prefix, url, node = "ackscope.probe.killed", lab_43.nodes[0].amqp, lab_43.nodes[0].name
    amqp = AmqpSettings(url=url, nodes={node: url.replace("guest:guest@", "")})
    settings = ProbesSettings.model_validate({"prefix": prefix, "handshake": {"interval": 0.5}})
    line = encode_targets([ProbeTarget("killed", amqp.servers(), settings)])
    seen = []
    for _ in range(2):
        process = child(line)
        batches = until(process, lambda batches: list(states_by_node(batches).values()).count("running") == 23)
        seen.append(mine(lab_43, prefix))
        process.kill()
        process.wait()
    swept = probe("sweep", "--amqp", url, "--prefix", prefix, "--node", node, "--json")
    again = probe("sweep", "--amqp", url, "--prefix", prefix, "--node", node)

    assert {"", node} == {outcome.node for batch in batches for outcome in batch.outcomes}
    assert {"handshake", "rtt", "confirm"} == {
        outcome.probe for batch in batches for outcome in batch.outcomes if outcome.node
    }
    assert seen[0] == seen[1]
    assert f"{prefix}.confirm.quorum@{node}" in seen[0]
    assert (0, seen[0]) == (swept.returncode, set(json.loads(swept.stdout)["deleted"]))
    assert f"no queue with prefix {prefix} found\n" == again.stdout
    assert set() == mine(lab_43, prefix)


def states_by_node(batches):
    """The last state of every stream of every node that was reported."""
    return {
        (outcome.node, outcome.probe, outcome.stream): outcome.state.value
        for batch in batches
        for outcome in batch.outcomes
    }


def test_a_sweep_leaves_what_is_in_use(lab_43):
    """A queue with a consumer stays, and the reason is reported; so does every queue that no probe makes."""
    prefix = "ackscope.probe.used"
    client = pika.BlockingConnection(pika.URLParameters(lab_43.nodes[0].amqp))
    channel = client.channel()
    for name in ("rtt.rtt", "delivery.classic", "of-a-user"):
        channel.queue_declare(f"{prefix}.{name}", durable=True)
    channel.basic_consume(f"{prefix}.delivery.classic", lambda *_: None)
    try:
        done = probe("sweep", "--amqp", lab_43.nodes[0].amqp, "--prefix", prefix)
        remaining = mine(lab_43, prefix)
    finally:
        for name in ("delivery.classic", "of-a-user"):
            channel.queue_delete(f"{prefix}.{name}")
        client.close()

    assert 1 == done.returncode
    assert f"deleted {prefix}.rtt.rtt\n" in done.stdout
    assert f"left    {prefix}.delivery.classic: in use: a client consumes from it\n" in done.stdout
    assert {f"{prefix}.delivery.classic", f"{prefix}.of-a-user"} == remaining
