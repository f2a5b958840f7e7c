"""`ackscope verify` as a user runs it."""

import json
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.integration

COMMAND = [sys.executable, "-m", "ackscope", "verify"]


def verify(*words):
    """Run the command; the finished process."""
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=400, check=False)


def objects(lab):
    """Queues and exchanges of ours that are on the broker."""
    names = lab.ctl(0, "list_queues", "name", "--silent") + lab.ctl(0, "list_exchanges", "name", "--silent")
    return [name for name in names.split() if ".verify." in name]


@pytest.mark.slow
def test_every_claim_is_reported_on_a_private_broker():
    """78 rows with evidence; what differs without a reason is a rate at most, which a loaded machine can bend."""
    done = verify("--lab", "--broker", "4.3", "--json")
    rows = json.loads(done.stdout)["rows"]
    unexplained = [row for row in rows if row["verdict"] in {"differs", "could-not-tell"} and not row["because"]]

    assert "" == done.stderr
    ids = [f"S{number:02}" for number in range(1, 54)] + [f"A{number:02}" for number in range(1, 26)]
    assert ids == [row["id"] for row in rows]
    assert [] == [row["id"] for row in rows if not row["evidence"]]
    assert [] == [row["id"] for row in rows if row["verdict"] == "needs-lab"]
    assert {row["id"] for row in unexplained} <= {"S21", "S26", "S29", "S30", "S31", "S32"}, unexplained
    assert (1 if unexplained else 0) == done.returncode


def test_a_running_broker_is_checked_and_left_as_it_was(lab_310):
    """The table fits 80 columns; what would disturb the broker is not done; nothing of ours remains."""
    node = lab_310.nodes[0]
    done = verify("--amqp", node.amqp, "--management", node.management, "--only", "S01,S03,S06,S09,S14,S16,S53")

    assert (0, "") == (done.returncode, done.stderr)
    assert f"RabbitMQ {lab_310.broker} at 127.0.0.1:" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "7 claims: holds 5, differs 1, needs --lab 1" == done.stdout.splitlines()[-1]
    assert [] == objects(lab_310)


def test_a_user_without_permission_learns_what_it_needs(lab_310):
    """One line and exit code 3: a refusal is no verdict on the broker."""
    lab_310.ctl(0, "add_user", "reader", "secret")
    try:
        lab_310.ctl(0, "set_permissions", "reader", "^ackscope", "^ackscope", "^ackscope")
        done = verify("--amqp", lab_310.nodes[0].amqp.replace("guest:guest", "reader:secret"), "--only", "S22")
    finally:
        lab_310.ctl(0, "delete_user", "reader")

    assert (3, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert "403 ACCESS_REFUSED" in done.stderr
    assert "user reader needs configure, write and read on names that start with ackscope.probe.verify" in done.stderr
    assert [] == objects(lab_310)


def test_a_run_that_is_ended_leaves_nothing(lab_43):
    """SIGTERM, as Ctrl-C, while checks run."""
    running = subprocess.Popen([*COMMAND, "--amqp", lab_43.nodes[0].amqp, "--only", "S11,S12,S17"])
    try:
        deadline = time.monotonic() + 60
        while not objects(lab_43):
            assert time.monotonic() < deadline
        running.send_signal(signal.SIGTERM)
        code = running.wait(60)
    finally:
        running.kill()

    assert 130 == code
    assert [] == objects(lab_43)


def test_the_claims_about_amqp_1_0_hold_and_leave_nothing(lab_43):
    """Each with its evidence."""
    ids = [f"A{number:02}" for number in range(1, 26)]
    done = verify("--amqp", lab_43.nodes[0].amqp, "--only", ",".join(ids), "--json")
    rows = json.loads(done.stdout)["rows"]

    assert (0, "") == (done.returncode, done.stderr)
    assert {"holds"} == {row["verdict"] for row in rows}, rows
    assert [] == [row["id"] for row in rows if not row["evidence"]]
    assert [] == objects(lab_43)


@pytest.mark.slow
def test_what_4_0_does_otherwise_is_explained():
    """By the version in which the documented behaviour came."""
    ids = [f"A{number:02}" for number in range(1, 26)]
    done = verify("--lab", "--broker", "4.0", "--only", ",".join(ids), "--json")
    rows = {row["id"]: row for row in json.loads(done.stdout)["rows"]}
    differs = {id_ for id_, row in rows.items() if row["verdict"] == "differs"}

    assert 0 == done.returncode
    assert {"A02", "A21"} == differs
    assert all("4.3" in rows[id_]["because"] for id_ in differs)
    assert "not-applicable" == rows["A20"]["verdict"]
