"""A recording with another number of queues."""

import json

import pytest

from bench.exporter.recording import Answer, Recording
from bench.exporter.scaled import Scaled

FULL = {"name": "a", "vhost": "/", "messages": 3, "messages_ready": 2, "memory": 100, "arguments": {}}
TOTALS = {"name": "a", "vhost": "/", "messages": 3, "messages_ready": 2}
OVERVIEW = Answer(200, json.dumps({"rabbitmq_version": "4.3.6", "object_totals": {"queues": 1, "channels": 5}}))
ALL = "/api/queues?disable_stats=true&enable_queue_totals=true"


def scaled(queues, **answers):
    """A server of one shape of queue."""
    return Scaled(Recording({"/api/overview": OVERVIEW, **answers}, [FULL], [TOTALS]), queues)


def read(server, target):
    """The JSON of an answer of 200."""
    made = server.answer(target)
    assert made.status == 200
    return json.loads(made.body)


def test_the_overview_counts_the_queues_that_there_are():
    """All other fields are as recorded."""
    assert {"queues": 7, "channels": 5} == read(scaled(7), "/api/overview")["object_totals"]


def test_the_list_of_totals_has_every_queue_once():
    """Each under its own name."""
    names = [queue["name"] for queue in read(scaled(1234), ALL)]

    assert len(set(names)) == len(names) == 1234


def test_totals_cost_little_and_full_statistics_much():
    """The server delays its answers by the number of queues that the broker would process."""
    server = scaled(1200)

    totals, page = server.answer(ALL), server.answer("/api/queues?page=3&page_size=500")

    assert (1200, False, 200, True) == (totals.queues, totals.full, page.queues, page.full)


def test_pages_are_those_of_the_broker():
    """The last one is shorter; one behind it is 400, as the broker answers."""
    server = scaled(1200)

    last = read(server, "/api/queues?page=3&page_size=500")

    assert (3, 200, 1200) == (last["page_count"], len(last["items"]), last["total_count"])
    assert server.answer("/api/queues?page=4&page_size=500").status == 400


def test_some_queues_differ_from_call_to_call():
    """They have one more ready message; the page and the totals agree."""
    server = scaled(2000)

    first, second = read(server, ALL), read(server, ALL)
    changed = [after for before, after in zip(first, second, strict=True) if before != after]

    assert 0 < len(changed) < 2000
    assert {(4, 3)} == {(queue["messages"], queue["messages_ready"]) for queue in changed}
    page = read(server, "/api/queues?page=2&page_size=500")["items"]
    assert second[500]["messages"] == page[0]["messages"]


@pytest.mark.parametrize(("name", "status"), [("queue-000001", 200), ("queue-000002", 404), ("other", 404)])
def test_a_single_queue_is_answered_where_it_exists(name, status):
    """With full statistics."""
    made = scaled(2).answer(f"/api/queues/%2F/{name}")

    assert status == made.status
    if status == 200:
        assert {"name": name, "memory": 100}.items() <= json.loads(made.body).items()


def test_everything_else_is_as_recorded():
    """With its query and status; what was not recorded is not there."""
    server = scaled(2, **{"/api/x?a=1": Answer(503, '{"a":1}')})

    assert (503, b'{"a":1}') == (server.answer("/api/x?a=1").status, server.answer("/api/x?a=1").body)
    assert server.answer("/api/x").status == 404


def test_a_recording_comes_back_from_its_file(tmp_path):
    """As it was."""
    recording = Recording({"/api/overview": OVERVIEW}, [FULL], [TOTALS])
    recording.save(tmp_path / "recording.json")

    assert recording == Recording.load(tmp_path / "recording.json")
