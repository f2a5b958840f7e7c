from itertools import pairwise

import pytest

from ackscope.errors import BadAnswer, Unreachable
from exporter.broker.client import JsonResponse
from exporter.broker.endpoints.health import CHECKS
from exporter.broker.fetch import UNRESPONSIVE_RETRY_SECONDS
from exporter.broker.health_poller import HealthPoller
from tests.unit.exporter.broker.server import json, reply

VERSION = (4, 3)
QUICK_SECONDS = 0.002
INTERVAL = 5.0


class Node:
    """Stands in for a client: checks that answer immediately, and some that hang; time is simulated.

    Attributes:
        now: simulated time in seconds.
        requested: last part of the path and seconds until the answer or timeout, in order.
    """

    timeout = 10.0

    def __init__(self, *hanging, slow=()):
        self.hanging, self.slow = set(hanging), dict(slow)
        self.failing = set()
        self.now, self.requested = 0.0, []

    def request(self, path, *, accepted, timeout):
        """As the client does."""
        limit = self.timeout if timeout is None else min(timeout, self.timeout)
        name = path.rpartition("/")[2]
        needs = float("inf") if name in self.hanging else self.slow.get(name, QUICK_SECONDS)
        self.requested.append((name, min(limit, needs)))
        self.now += min(limit, needs)
        if needs > limit:
            raise Unreachable("hangs")
        return JsonResponse(503, {"status": "failed"}) if name in self.failing else JsonResponse(200, {"status": "ok"})


def readings(node, seconds, health=None):
    """Consecutive polls, an interval apart: when each ended, how long it took, and its answers."""
    health = health or HealthPoller(lambda: node.now)
    found, until = [], node.now + seconds
    while node.now < until:
        began = node.now
        answers = health.poll(node, "/health", VERSION)
        found.append((node.now, node.now - began, answers))
        node.now = max(node.now, began + INTERVAL)
    return found


def test_missing_checks_are_requested_once(server, client):
    """404 means: not in this version; not an error, and not requested again until the version changes."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    health = HealthPoller()

    first = health.poll(client, "/health", (4, 0))
    first_paths, server.seen[:] = list(server.seen), []
    health.poll(client, "/health", (4, 0))
    second_paths, server.seen[:] = list(server.seen), []
    health.poll(client, "/health", (4, 3))

    assert {"alarms": {"status": 200, "body": {"status": "ok"}}} == first
    assert "/health/local-alarms" in first_paths
    assert ["/health/alarms"] == second_paths
    assert "/health/ready-to-serve-clients" in server.seen
    assert "/health/node-is-mirror-sync-critical" not in first_paths + server.seen


def test_the_list_of_certificates_is_requested_rarely(server, client):
    """The expiry check is requested every time; the list, for which files are read, is reused for a while."""
    body = {"status": "failed", "reason": "Certificates expiring", "expired": []}
    server.routes["/health/alarms"] = json({"status": "ok"})
    server.routes["/health/certificate-expiration/1/months"] = json({"status": "ok"})
    server.routes["/health/certificate-expiration/100/years"] = json(body, 503)
    health = HealthPoller()

    answers = [health.poll(client, "/health", (4, 0)) for _ in range(3)]

    certificates = [answer["certificates"] for answer in answers]
    assert [(503, body)] * 3 == [(each["status"], each["body"]) for each in certificates]
    assert "age" not in certificates[0]
    assert 0 < certificates[1]["age"] < certificates[2]["age"]
    assert server.seen.count("/health/certificate-expiration/1/months") == 3
    assert server.seen.count("/health/certificate-expiration/100/years") == 1


def test_a_failed_check_is_an_answer(server, client):
    """503 with JSON."""
    body = {"status": "failed", "reason": "There are alarms", "alarms": []}
    server.routes["/health/alarms"] = json(body, 503)

    assert {"alarms": {"status": 503, "body": body}} == HealthPoller().poll(client, "/health", (4, 0))


def test_a_failing_request_does_not_affect_other_checks(server, client):
    """It has an error instead."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    server.routes["/health/virtual-hosts"] = json({"error": "x", "reason": "timeout"}, 500)

    answers = HealthPoller().poll(client, "/health", (4, 0))

    assert answers["alarms"]["status"] == 200
    assert {
        "error": f"{server.where}/health/virtual-hosts: 500 from the server (timeout); "
        "see the broker's log at this time"
    } == answers["virtual-hosts"]


def test_no_check_at_all_is_an_error_each_time(server, client):
    """A server without any check is not a broker; nothing is concluded about a version."""
    health = HealthPoller()
    for _ in range(2):
        with pytest.raises(BadAnswer) as caught:
            health.poll(client, "/health", (4, 0))

        assert (
            f"{server.where}/health: 404 to every health check; is this the management API of RabbitMQ 3.8 or later, "
            "and the path prefix of the address right?"
        ) == str(caught.value)


def test_a_503_of_a_proxy_is_not_a_check(server, client):
    """503 with a web page comes from the proxy, not from the broker."""
    server.routes["/health/alarms"] = reply(b"<html>", 503, "text/html")

    with pytest.raises(Unreachable):
        HealthPoller().poll(client, "/health", (4, 0))


# ---------------------------------------------------------------- checks that are spared


def poll_reusing(node, health):
    """One poll that reuses checks that passed within 30 s, followed by a pause of one interval."""
    node.requested.clear()
    answers = health.poll(node, "/health", VERSION, max_age=30)
    node.now += INTERVAL
    return {name for name, _ in node.requested}, answers


def test_passed_checks_are_reused_for_a_while():
    """All except alarms, which also show that the node answers; with their age."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    found = [poll_reusing(node, health) for _ in range(7)]
    everything = found[0][0] - {"years"}

    assert [{"alarms"}] * 5 == [requested for requested, _ in found[1:6]]
    assert everything == found[6][0]
    ages = [answers["virtual-hosts"].get("age", 0.0) for _, answers in found]
    assert [pytest.approx(number * INTERVAL, abs=0.1) for number in (0, 1, 2, 3, 4, 5, 0)] == ages
    assert {"age"} & {name for _, answers in found for name in answers["alarms"]} == set()


def test_failed_checks_are_requested_every_time():
    """So recovery is seen immediately; an answer from before the failure is not reused."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    poll_reusing(node, health)
    node.failing = {"virtual-hosts"}
    node.now += 30
    found = [poll_reusing(node, health) for _ in range(3)]
    node.failing = set()
    found += [poll_reusing(node, health) for _ in range(2)]

    assert [503, 503, 503, 200, 200] == [answers["virtual-hosts"]["status"] for _, answers in found]
    assert [True, True, True, True, False] == ["virtual-hosts" in requested for requested, _ in found]


def test_nothing_is_reused_by_default():
    """On an active broker every check is requested again."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    everything, _ = poll_reusing(node, health)
    node.requested.clear()
    health.poll(node, "/health", VERSION)

    assert everything - {"years"} == {name for name, _ in node.requested}


# ---------------------------------------------------------------- checks that hang


@pytest.mark.parametrize(
    "hanging",
    [
        ("virtual-hosts",),
        ("virtual-hosts", "node-is-quorum-critical"),
        ("virtual-hosts", "is-in-service", "all-vhosts", "reached-target-cluster-size"),
    ],
)
def test_checks_that_answer_are_never_older_than_two_intervals(hanging):
    """However many hang, and for however long: at first, and every time they are retried."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    before = readings(node, 20, health)[-1][0]
    node.hanging = set(hanging)
    ends = [before]
    for end, _, answers in readings(node, 150, health):
        assert answers["alarms"]["status"] == 200
        ends.append(end)

    assert max(later - end for end, later in pairwise(ends)) <= 2 * INTERVAL


def test_a_check_that_hangs_is_retried_after_a_minute():
    """Until then it has an error instead."""
    node = Node("virtual-hosts")
    found = readings(node, 90)
    requested = [seconds for name, seconds in node.requested if name == "virtual-hosts"]

    assert [2, 4] == requested
    assert {
        "error": f"no answer within 2.0 s, while other checks answered; retried every {UNRESPONSIVE_RETRY_SECONDS:g} s"
    } == found[0][2]["virtual-hosts"]


def test_a_slow_check_succeeds_eventually():
    """Its timeout grows with every retry, then follows its response time."""
    node = Node(slow={"all-vhosts": 7.0})
    found = readings(node, 300)
    answered = ["status" in answers["quorum-queues-without-elected-leaders"] for _, _, answers in found]

    assert not answered[0]
    assert answered[-1]
    assert answered == sorted(answered)


def test_hanging_checks_are_all_retried_once_one_answers():
    """The cause is gone: they do not wait for their turns."""
    node = Node("virtual-hosts", "is-in-service", "all-vhosts")
    health = HealthPoller(lambda: node.now)
    readings(node, 30, health)
    node.hanging = set()
    found = readings(node, 60, health)
    missing = [sum("error" in answer for answer in answers.values()) for _, _, answers in found]

    assert {0, 3} == set(missing)
    assert missing == sorted(missing, reverse=True)


def test_a_node_that_does_not_answer_at_all_gets_the_full_timeout():
    """No check is known to answer faster."""
    node = Node(*(check.path.rpartition("/")[2] for check in CHECKS))
    with pytest.raises(Unreachable):
        readings(node, 1)

    assert [("alarms", Node.timeout)] == node.requested
