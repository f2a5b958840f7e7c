import pytest

from ackscope.errors import BadAnswer, Unreachable
from exporter.broker.fetch import fetch_multiple, fetch_page, fetch_pages, fetch_per_node, fetch_queue, fetch_totals
from tests.unit.exporter.broker.server import json

OUT_OF_RANGE = json({"error": "page_out_of_range", "reason": "Page out of range, page: 3 page size: 500, len: 6"}, 400)


def in_turn(*routes):
    """A route with a different answer every time."""
    left = list(routes)

    def answer(request):
        left.pop(0)(request)

    return answer


def page(number, of, *names):
    """One page as the API sends it."""
    return json({"page": number, "page_count": of, "items": [{"name": name} for name in names]})


def test_pages_are_read_until_the_last(server, client):
    """With the largest page size, and never an empty `sort`."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a", "b"), page(2, 2, "c"))

    found = fetch_pages(client, "/api/queues")

    assert [{"name": "a"}, {"name": "b"}, {"name": "c"}] == found
    assert ["/api/queues?page=1&page_size=500", "/api/queues?page=2&page_size=500"] == server.seen


def test_no_queues_is_one_empty_page(server, client):
    """A broker without queues."""
    server.routes["/api/queues"] = page(1, 0)

    assert fetch_pages(client, "/api/queues") == []


def test_a_list_that_shrinks_meanwhile_ends_there(server, client):
    """The last page no longer exists when it is requested: what was read counts."""
    server.routes["/api/queues"] = in_turn(page(1, 3, "a"), page(2, 3, "b"), OUT_OF_RANGE)

    assert [{"name": "a"}, {"name": "b"}] == fetch_pages(client, "/api/queues")


def test_an_answer_that_is_not_a_page_is_an_error(server, client):
    """Half a list never looks like a whole one."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a"), json({"items": "undefined"}))

    with pytest.raises(BadAnswer) as caught:
        fetch_pages(client, "/api/queues")

    assert f"{server.where}/api/queues: page 2 has no list of items" == str(caught.value)


def test_a_failure_on_a_later_page_is_an_error(server, client):
    """Half a list never looks like a whole one."""
    server.routes["/api/queues"] = in_turn(page(1, 2, "a"), json({"error": "x", "reason": "y"}, 500))

    with pytest.raises(BadAnswer):
        fetch_pages(client, "/api/queues")


# ---------------------------------------------------------------- several endpoints, and nodes


LIMITS = ("/api/vhost-limits", "/api/user-limits")
LINKS = ("/api/shovels", "/api/federation-links")
FOR_ADMINISTRATORS = json({"error": "not_authorised", "reason": "Not administrator user"}, 401)


def test_a_missing_endpoint_is_omitted(server, client):
    """A disabled plugin or an older version."""
    server.routes["/api/shovels"] = json([1])

    assert {"/api/shovels": [1]} == fetch_multiple(client, LINKS)


def test_a_broker_without_any_of_the_plugins_has_no_links(server, client):
    """An empty result is an answer."""
    assert fetch_multiple(client, LINKS) == {}


def test_a_server_without_the_common_endpoints_is_not_a_broker(server, client):
    """No limits are not the same as no answer."""
    with pytest.raises(BadAnswer) as caught:
        fetch_multiple(client, LIMITS)

    assert str(caught.value).startswith(f"{server.where}/api/vhost-limits: 404, no management API here")


def test_an_endpoint_for_administrators_has_an_error_instead(server, client):
    """The tag `monitoring` is enough for the others."""
    server.routes["/api/vhost-limits"] = json([])
    server.routes["/api/user-limits"] = FOR_ADMINISTRATORS

    assert {
        "/api/vhost-limits": [],
        "/api/user-limits": {
            "error": f"{server.where}/api/user-limits: 401 this version shows it to administrators only; "
            "give user 'guest' the tag `administrator` to see it, or ignore this"
        },
    } == fetch_multiple(client, LIMITS)


def test_one_endpoint_that_fails_fails_them_all(server, client):
    """The answers of the others would look complete."""
    server.routes["/api/vhost-limits"] = json([])
    server.routes["/api/user-limits"] = json({"error": "x", "reason": "timeout"}, 500)

    with pytest.raises(BadAnswer):
        fetch_multiple(client, LIMITS)


MEMORY = "/api/nodes/{node}/memory"


def test_every_node_is_read(server, client):
    """Its name is quoted; a node that the broker does not know is omitted."""
    server.routes["/api/nodes/rabbit%40a/memory"] = json({"memory": 1})
    server.routes["/api/nodes/rabbit%40b/memory"] = json({"memory": 2})

    assert {"rabbit@a": {"memory": 1}, "rabbit@b": {"memory": 2}} == fetch_per_node(
        client, MEMORY, ["rabbit@a", "rabbit@b", "rabbit@c"]
    )


def test_a_failing_node_does_not_affect_the_others(server, client):
    """It has an error instead."""
    server.routes["/api/nodes/a/memory"] = json({"error": "x", "reason": "timeout"}, 500)
    server.routes["/api/nodes/b/memory"] = json([2])

    assert {
        "a": {
            "error": f"{server.where}/api/nodes/a/memory: 500 from the server (timeout); "
            "see the broker's log at this time"
        },
        "b": [2],
    } == fetch_per_node(client, MEMORY, ["a", "b"])


@pytest.mark.parametrize("nodes", [["a"], ["a", "b"]])
def test_no_readable_node_is_an_error(server, client, nodes):
    """It must not look like an empty result."""
    server.routes["/api/nodes/a/memory"] = json({}, 503)

    with pytest.raises(Unreachable) as caught:
        fetch_per_node(client, MEMORY, nodes)

    assert f"{server.where}/api/nodes/a/memory: 503" in str(caught.value)


def test_no_known_node_is_an_error(server, client):
    """Before the first reading of the nodes, and while they cannot be read."""
    with pytest.raises(Unreachable) as caught:
        fetch_per_node(client, MEMORY, [])

    assert (
        f"{server.where}/api/nodes/{{node}}/memory: no running node is known; see why /api/nodes cannot be read"
    ) == str(caught.value)


# ---------------------------------------------------------------- queues


def test_a_page_past_the_end_is_empty(server, client):
    """The list has become shorter."""
    server.routes["/api/queues"] = in_turn(page(1, 3, "a"), OUT_OF_RANGE)

    assert (([{"name": "a"}], 3), ([], 0)) == (
        fetch_page(client, "/api/queues", 1),
        fetch_page(client, "/api/queues", 3),
    )


def test_totals_are_one_request(server, client):
    """The cheapest form that the API offers."""
    server.routes["/api/queues"] = json([{"name": "a"}])

    assert [{"name": "a"}] == list(fetch_totals(client))
    assert ["/api/queues?disable_stats=true&enable_queue_totals=true"] == server.seen


def test_totals_that_are_not_a_list_are_an_error(server, client):
    """Never zero queues."""
    server.routes["/api/queues"] = json({"items": []})

    with pytest.raises(BadAnswer) as caught:
        fetch_totals(client)

    assert (
        f"{server.where}/api/queues: the answer is not a list of queues; check what a proxy in between returns"
        == str(caught.value)
    )


def test_one_queue_is_requested_by_its_name(server, client):
    """Whatever letters it contains; None if it no longer exists."""
    server.routes["/api/queues/%2F/a%2Fb%3Fc"] = json({"name": "a/b?c"})

    assert ({"name": "a/b?c"}, None) == (fetch_queue(client, "/", "a/b?c"), fetch_queue(client, "/", "gone"))


def test_an_answer_that_is_not_a_queue_is_an_error(server, client):
    """Never an empty queue."""
    server.routes["/api/queues/v/q"] = json([])

    with pytest.raises(BadAnswer) as caught:
        fetch_queue(client, "v", "q")

    assert f"{server.where}/api/queues/v/q: the answer is not a queue; check what a proxy in between returns" == str(
        caught.value
    )


def test_a_list_whose_pages_are_all_the_same_is_an_error(server, client):
    """As of a proxy that ignores the query: it would be requested for two thousand pages in each poll."""
    server.routes["/api/queues"] = page(1, 10**9, "a", "b")

    with pytest.raises(BadAnswer) as caught:
        fetch_pages(client, "/api/queues")

    reported = "page 2 is page 1 again; check what a proxy in between returns"
    assert f"{server.where}/api/queues: {reported}" == str(caught.value)
    assert 2 == len(server.seen)
