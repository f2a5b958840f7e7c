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
    """In place of a client: checks that answer at once, and some that hang; the time it takes is only counted.

    Attributes:
        now: seconds of its clock.
        asked: name of the path and how long it was waited for, in order.
    """

    timeout = 10.0

    def __init__(self, *hanging, slow=()):
        self.hanging, self.slow = set(hanging), dict(slow)
        self.failing = set()
        self.now, self.asked = 0.0, []

    def request(self, path, *, accepted, timeout):
        """As the client does."""
        limit = self.timeout if timeout is None else min(timeout, self.timeout)
        name = path.rpartition("/")[2]
        needs = float("inf") if name in self.hanging else self.slow.get(name, QUICK_SECONDS)
        self.asked.append((name, min(limit, needs)))
        self.now += min(limit, needs)
        if needs > limit:
            raise Unreachable("hangs")
        return JsonResponse(503, {"status": "failed"}) if name in self.failing else JsonResponse(200, {"status": "ok"})


def readings(node, seconds, health=None):
    """Readings one after the other, an interval apart: when each was complete, how long it took, and its answers."""
    health = health or HealthPoller(lambda: node.now)
    found, until = [], node.now + seconds
    while node.now < until:
        began = node.now
        answers = health.poll(node, "/health", VERSION)
        found.append((node.now, node.now - began, answers))
        node.now = max(node.now, began + INTERVAL)
    return found


def test_checks_that_a_version_lacks_are_asked_once(server, client):
    """404 means: not in this version; it is no error and is not asked for again, until the version changes."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    health = HealthPoller()

    first = health.poll(client, "/health", (4, 0))
    asked_first, server.seen[:] = list(server.seen), []
    health.poll(client, "/health", (4, 0))
    asked_second, server.seen[:] = list(server.seen), []
    health.poll(client, "/health", (4, 3))

    assert {"alarms": {"status": 200, "body": {"status": "ok"}}} == first
    assert "/health/local-alarms" in asked_first
    assert ["/health/alarms"] == asked_second
    assert "/health/ready-to-serve-clients" in server.seen
    assert "/health/node-is-mirror-sync-critical" not in asked_first + server.seen


def test_all_certificates_are_asked_for_seldom(server, client):
    """The verdict is asked each time; the list of all of them, for which files are read, is kept for a while."""
    body = {"status": "failed", "reason": "Certificates expiring", "expired": []}
    server.routes["/health/alarms"] = json({"status": "ok"})
    server.routes["/health/certificate-expiration/1/months"] = json({"status": "ok"})
    server.routes["/health/certificate-expiration/100/years"] = json(body, 503)
    health = HealthPoller()

    answers = [health.poll(client, "/health", (4, 0)) for _ in range(3)]

    told = [answer["certificates"] for answer in answers]
    assert [(503, body)] * 3 == [(each["status"], each["body"]) for each in told]
    assert "age" not in told[0]
    assert 0 < told[1]["age"] < told[2]["age"]
    assert server.seen.count("/health/certificate-expiration/1/months") == 3
    assert server.seen.count("/health/certificate-expiration/100/years") == 1


def test_a_failed_check_is_an_answer(server, client):
    """503 with JSON."""
    body = {"status": "failed", "reason": "There are alarms", "alarms": []}
    server.routes["/health/alarms"] = json(body, 503)

    assert {"alarms": {"status": 503, "body": body}} == HealthPoller().poll(client, "/health", (4, 0))


def test_one_check_that_cannot_be_asked_leaves_the_others(server, client):
    """Its error stands in its place."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    server.routes["/health/virtual-hosts"] = json({"error": "x", "reason": "timeout"}, 500)

    answers = HealthPoller().poll(client, "/health", (4, 0))

    assert answers["alarms"]["status"] == 200
    assert {
        "error": f"{server.where}/health/virtual-hosts: 500 from the server (timeout); "
        "see the broker's log at this time"
    } == answers["virtual-hosts"]


def test_no_check_at_all_is_an_error_each_time(server, client):
    """A server that knows none of the checks is no broker; nothing is concluded from it about a version."""
    health = HealthPoller()
    for _ in range(2):
        with pytest.raises(BadAnswer) as caught:
            health.poll(client, "/health", (4, 0))

        assert (
            f"{server.where}/health: 404 to every health check; is this the management API of RabbitMQ 3.8 or later, "
            "and the path prefix of the address right?"
        ) == str(caught.value)


def test_a_proxy_that_says_503_is_no_check(server, client):
    """503 with a web page is the proxy's word, not the broker's."""
    server.routes["/health/alarms"] = reply(b"<html>", 503, "text/html")

    with pytest.raises(Unreachable):
        HealthPoller().poll(client, "/health", (4, 0))


# ---------------------------------------------------------------- checks that are spared


def sparing(node, health):
    """One reading that takes for good what passed timeout half a minute, and the next a round later."""
    node.asked.clear()
    answers = health.poll(node, "/health", VERSION, max_age=30)
    node.now += INTERVAL
    return {name for name, _ in node.asked}, answers


def test_what_passed_is_good_for_a_while():
    """All but the alarms, which tell that the node answers too; how old each is stands beside."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    found = [sparing(node, health) for _ in range(7)]
    everything = found[0][0] - {"years"}

    assert [{"alarms"}] * 5 == [asked for asked, _ in found[1:6]]
    assert everything == found[6][0]
    ages = [answers["virtual-hosts"].get("age", 0.0) for _, answers in found]
    assert [pytest.approx(number * INTERVAL, abs=0.1) for number in (0, 1, 2, 3, 4, 5, 0)] == ages
    assert {"age"} & {name for _, answers in found for name in answers["alarms"]} == set()


def test_what_failed_is_asked_each_time():
    """One sees at once that it is over; and what was good before it failed is not brought up again."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    sparing(node, health)
    node.failing = {"virtual-hosts"}
    node.now += 30
    found = [sparing(node, health) for _ in range(3)]
    node.failing = set()
    found += [sparing(node, health) for _ in range(2)]

    assert [503, 503, 503, 200, 200] == [answers["virtual-hosts"]["status"] for _, answers in found]
    assert [True, True, True, True, False] == ["virtual-hosts" in asked for asked, _ in found]


def test_nothing_is_spared_unless_asked_for():
    """As soon as something moves, every check is asked again."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    everything, _ = sparing(node, health)
    node.asked.clear()
    health.poll(node, "/health", VERSION)

    assert everything - {"years"} == {name for name, _ in node.asked}


# ---------------------------------------------------------------- checks that hang


@pytest.mark.parametrize(
    "hanging",
    [
        ("virtual-hosts",),
        ("virtual-hosts", "node-is-quorum-critical"),
        ("virtual-hosts", "is-in-service", "all-vhosts", "reached-target-cluster-size"),
    ],
)
def test_those_that_answer_are_never_older_than_two_intervals(hanging):
    """However many hang, and for however long: at first, and each time that they are asked again."""
    node = Node()
    health = HealthPoller(lambda: node.now)
    before = readings(node, 20, health)[-1][0]
    node.hanging = set(hanging)
    ends = [before]
    for end, _, answers in readings(node, 150, health):
        assert answers["alarms"]["status"] == 200
        ends.append(end)

    assert max(later - end for end, later in pairwise(ends)) <= 2 * INTERVAL


def test_one_that_hangs_is_left_alone_for_a_minute():
    """And its place says so."""
    node = Node("virtual-hosts")
    found = readings(node, 90)
    asked = [seconds for name, seconds in node.asked if name == "virtual-hosts"]

    assert [2, 4] == asked
    assert {
        "error": f"no answer within 2.0 s, while other checks answered; retried every {UNRESPONSIVE_RETRY_SECONDS:g} s"
    } == found[0][2]["virtual-hosts"]


def test_one_that_is_slow_by_nature_is_told_in_the_end():
    """Each time it is given longer, and then as long as it takes."""
    node = Node(slow={"all-vhosts": 7.0})
    found = readings(node, 300)
    told = ["status" in answers["quorum-queues-without-elected-leaders"] for _, _, answers in found]

    assert not told[0]
    assert told[-1]
    assert told == sorted(told)


def test_those_that_hung_are_all_asked_once_one_of_them_answers():
    """What held them up is over: they do not wait for their turns."""
    node = Node("virtual-hosts", "is-in-service", "all-vhosts")
    health = HealthPoller(lambda: node.now)
    readings(node, 30, health)
    node.hanging = set()
    found = readings(node, 60, health)
    missing = [sum("error" in answer for answer in answers.values()) for _, _, answers in found]

    assert {0, 3} == set(missing)
    assert missing == sorted(missing, reverse=True)


def test_a_node_that_does_not_answer_at_all_gets_its_whole_time():
    """Nothing is known to answer at once then."""
    node = Node(*(check.path.rpartition("/")[2] for check in CHECKS))
    with pytest.raises(Unreachable):
        readings(node, 1)

    assert [("alarms", Node.timeout)] == node.asked
