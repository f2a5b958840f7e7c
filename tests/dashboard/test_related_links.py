from dataclasses import replace

import pytest

from ackscope.findings import Involved, Subject
from dashboard.format.related_links import related_links
from tests.dashboard.answers import HOSTILE, stuck

SINCE = "2026-03-01T12:04:31Z"
HISTORY = ("history", {"at": "2026-03-01T12:04", "around": "1h"})


def found(subject, *clients, since=SINCE, consumes=True, has_history=True):
    """Pages and addresses of a finding that involves these clients, in their order."""
    finding = replace(stuck(), subject=subject, involved=Involved(clients=clients), since=since)
    return [(link.page, link.query) for link in related_links(finding, lambda _: consumes, has_history=has_history)]


def test_links_of_a_queue():
    """Its details, its client by name, and its history."""
    queue = Subject(kind="queue", name="orders", vhost="shop")
    assert [
        ("queues", {"queue": "orders", "vhost": "shop"}),
        ("consumers", {"find": "invoice-worker"}),
        HISTORY,
    ] == found(queue, "invoice-worker")


def test_a_client_that_does_not_consume():
    """It is not searched among the consumers: the link shows those of the queue, or the virtual host."""
    queue = Subject(kind="queue", name="orders", vhost="/")
    exchange = Subject(kind="exchange", name="events", vhost="shop")

    assert ("consumers", {"find": "orders"}) in found(queue, "shop-web", consumes=False)
    assert [("topology", {"vhost": "shop"}), HISTORY] == found(exchange, "shop-web", consumes=False)


def test_several_clients():
    """The link shows all consumers of the queue."""
    queue = Subject(kind="queue", name="orders", vhost="/")

    assert ("consumers", {"find": "orders"}) in found(queue, "one", "two")


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (Subject(kind="connection", name="10.1.4.17:51244 -> 10.1.0.1:5672"), [("consumers", {"find": "10.1.4.17"})]),
        (Subject(kind="connection", name="user billing"), []),
        (Subject(kind="node", name="rabbit@one"), [("nodes", {})]),
        (Subject(kind="vhost", name="/"), []),
    ],
    ids=["connection", "limit", "node", "vhost"],
)
def test_other_subjects(subject, expected):
    """Each has a link to its page, if any; all have a link to what changed."""
    assert [*expected, HISTORY] == found(subject)


def test_without_a_history_nothing_links_to_it():
    """A page without data is a detour."""
    assert [("nodes", {})] == found(Subject(kind="node", name="rabbit@one"), has_history=False)


def test_without_a_start_time_there_is_no_link_to_the_history():
    """The start time is unknown."""
    assert [] == found(Subject(kind="cluster", name="shop"), since=None)


def test_names_may_contain_anything():
    """They are query parameters, not patterns."""
    queue = Subject(kind="queue", name=HOSTILE, vhost=HOSTILE)

    assert ("consumers", {"find": HOSTILE}) in found(queue, HOSTILE)
    assert ("queues", {"queue": HOSTILE, "vhost": HOSTILE}) in found(queue)
