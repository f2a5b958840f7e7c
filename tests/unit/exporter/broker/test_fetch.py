import pytest

from ackscope.errors import BadAnswer, Unreachable
from exporter.broker.client import ManagementClient
from exporter.broker.fetch import HealthFetcher, pages
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import json, reply, serve

OUT_OF_RANGE = json({"error": "page_out_of_range", "reason": "Page out of range, page: 3 page size: 500, len: 6"}, 400)


def in_turn(*routes):
    """A route that answers differently each time."""
    left = list(routes)

    def answer(request):
        left.pop(0)(request)

    return answer


def page(number, of, *names):
    """One page as the API sends it."""
    return json({"page": number, "page_count": of, "items": [{"name": name} for name in names]})


@pytest.fixture
def server():
    """A server without routes yet."""
    with serve({}) as running:
        yield running


@pytest.fixture
def client(server):
    """A client of that server."""
    client = ManagementClient(ManagementSettings(url=server.url))
    yield client
    client.close()


def test_pages_are_read_until_the_last(server, client):
    """The most objects a page can hold, page after page, never an empty `sort`."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a", "b"), page(2, 2, "c"))

    found = pages(client, "/api/queues")

    assert [{"name": "a"}, {"name": "b"}, {"name": "c"}] == found
    assert ["/api/queues?page=1&page_size=500", "/api/queues?page=2&page_size=500"] == server.seen


def test_no_queues_is_one_empty_page(server, client):
    """A broker without queues."""
    server.routes["/api/queues"] = page(1, 0)

    assert pages(client, "/api/queues") == []


def test_a_list_that_shrinks_meanwhile_ends_there(server, client):
    """The last page is gone when it is asked for: what was read counts."""
    server.routes["/api/queues"] = in_turn(page(1, 3, "a"), page(2, 3, "b"), OUT_OF_RANGE)

    assert [{"name": "a"}, {"name": "b"}] == pages(client, "/api/queues")


def test_a_page_that_is_none_is_an_error(server, client):
    """Half a list never looks like a whole one."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a"), json({"items": "undefined"}))

    with pytest.raises(BadAnswer) as caught:
        pages(client, "/api/queues")

    assert f"{server.where}/api/queues: page 2 holds no list of items" == str(caught.value)


def test_a_failure_on_a_later_page_is_an_error(server, client):
    """Half a list never looks like a whole one."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a"), json({"error": "x", "reason": "y"}, 500))

    with pytest.raises(BadAnswer):
        pages(client, "/api/queues")


def test_checks_that_a_version_lacks_are_asked_once(server, client):
    """404 means: not in this version; it is no error and is not asked for again, until the version changes."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    health = HealthFetcher()

    first = health.fetch(client, "/health", (4, 0))
    asked_first, server.seen[:] = list(server.seen), []
    health.fetch(client, "/health", (4, 0))
    asked_second, server.seen[:] = list(server.seen), []
    health.fetch(client, "/health", (4, 3))

    assert {"alarms": {"status": 200, "body": {"status": "ok"}}} == first
    assert "/health/local-alarms" in asked_first
    assert ["/health/alarms"] == asked_second
    assert "/health/ready-to-serve-clients" in server.seen
    assert "/health/node-is-mirror-sync-critical" not in asked_first + server.seen


def test_a_failed_check_is_an_answer(server, client):
    """503 with JSON."""
    body = {"status": "failed", "reason": "There are alarms", "alarms": []}
    server.routes["/health/alarms"] = json(body, 503)

    assert {"alarms": {"status": 503, "body": body}} == HealthFetcher().fetch(client, "/health", (4, 0))


def test_one_check_that_cannot_be_asked_leaves_the_others(server, client):
    """Its error stands in its place."""
    server.routes["/health/alarms"] = json({"status": "ok"})
    server.routes["/health/virtual-hosts"] = json({"error": "x", "reason": "timeout"}, 500)

    answers = HealthFetcher().fetch(client, "/health", (4, 0))

    assert answers["alarms"]["status"] == 200
    assert {
        "error": f"{server.where}/health/virtual-hosts: 500 from the server (timeout); "
        "see the broker's log of this moment"
    } == answers["virtual-hosts"]


def test_no_check_at_all_is_an_error_each_time(server, client):
    """A server that knows none of the checks is no broker; nothing is concluded from it about a version."""
    health = HealthFetcher()
    for _ in range(2):
        with pytest.raises(BadAnswer) as caught:
            health.fetch(client, "/health", (4, 0))

        assert (
            f"{server.where}/health: 404 to every health check; is this the management API of RabbitMQ 3.8 or later, "
            "and the path prefix of the address right?"
        ) == str(caught.value)


def test_a_proxy_that_says_503_is_no_check(server, client):
    """503 with a web page is the proxy's word, not the broker's."""
    server.routes["/health/alarms"] = reply(b"<html>", 503, "text/html")

    with pytest.raises(Unreachable):
        HealthFetcher().fetch(client, "/health", (4, 0))
