import dataclasses
from types import MappingProxyType

import orjson
import pytest

from ackscope.clock import Instant
from ackscope.findings import Inconclusive
from ackscope.reports import as_document
from ackscope.snapshot import Part, Snapshot
from ackscope.topology import Bindings
from diagnosis.finding_changes import EndedFinding
from diagnosis.text import Cluster, render
from diagnosis.window import Window
from exporter.api import documents
from exporter.exposition.live.process import SupervisedProcess
from exporter.routes import ready
from exporter.runtime.state import ClusterState, ReceivedOutcome, StateStore
from tests.unit.exporter.made import NOW, Verdicts, confirming, finding, outcome, part, small

LATER = Instant(wall=NOW.wall + 60, mono=NOW.mono + 60)
NOTHING = ClusterState(window=Window.empty("shop"))


def known(snapshot, **chunks):
    """Return the state of one cluster."""
    return ClusterState(window=Window.empty("shop").add(snapshot), **chunks)


def parsed(document):
    """The document as a client sees it."""
    return orjson.loads(documents.as_json(document))


def test_findings_have_the_agreed_shape():
    """Versions, ages, findings, what is inconclusive, which rules were checked; rendered for this cluster."""
    gap = Inconclusive(rule="memory-alarm", reason="no_counters", permanent=True)
    result = Verdicts(findings=(finding(),), inconclusive=(gap,)).of("shop")
    seen = parsed(
        documents.findings({"shop": known(small(), verdict=result)}, LATER, lambda name: f"http://{name}:15672")
    )
    cluster = Cluster(version=(4, 3), management="http://shop:15672")

    assert {
        "now": "2023-11-14T22:14:20Z",
        "clusters": [
            {
                "cluster": "shop",
                "broker": "4.3.6",
                "age_seconds": 60.0,
                "overdue_seconds": 60.0,
                "findings": [orjson.loads(orjson.dumps(as_document(render(finding(), cluster))))],
                "cannot_tell": [
                    {
                        "rule": "memory-alarm",
                        "because": (
                            "The broker keeps no message counters (statistics are disabled, or rates_mode is none)."
                        ),
                        "needs": (
                            "Set management.rates_mode = basic and management.disable_stats = false in rabbitmq.conf, "
                            "and restart the node."
                        ),
                        "permanent": True,
                        "reason": "no_counters",
                        "facts": {},
                    }
                ],
                "set_aside": [],
                "checked": ["no-consumer", "stuck-consumer"],
                "ended": [],
            }
        ],
        "triage_writable": False,
    } == seen


def test_what_ended_recently_is_reported_with_its_age():
    """Without texts of the time when it was present."""
    state = known(small(), verdict=Verdicts().of("shop"), ended=(EndedFinding(finding=finding(), at=NOW),))
    (entry,) = parsed(documents.findings({"shop": state}, LATER))["clusters"]

    assert [
        {
            "rule": "no-consumer",
            "severity": "warning",
            "subject": {"kind": "queue", "name": "orders", "vhost": "/", "node": None},
            "since": "2023-11-14T22:13:20Z",
            "ended_at": NOW.iso(),
            "ended_seconds": 60.0,
            "runbook": "diagnosis/catalogue/no-consumer.md",
        }
    ] == entry["ended"]


@pytest.mark.parametrize(("every", "overdue"), [(5.0, 55.0), (150.0, 0.0)])
def test_what_is_read_seldom_by_plan_is_not_overdue(every, overdue):
    """One minute old is fine for a quiet broker, but not for one that is read every 5 s."""
    planned = {name: dataclasses.replace(seen, every=every) for name, seen in small().parts.items()}
    entry = parsed(documents.findings({"shop": known(dataclasses.replace(small(), **planned))}, LATER))["clusters"][0]

    assert (60.0, overdue) == (entry["age_seconds"], entry["overdue_seconds"])


def test_before_the_first_poll_nothing_is_claimed():
    """There is no version, no age and no checked rule, so the cluster does not count as healthy."""
    entry = parsed(documents.findings({"shop": NOTHING}, NOW))["clusters"][0]

    assert (None, None, [], [], []) == tuple(
        entry[key] for key in ("broker", "age_seconds", "findings", "cannot_tell", "checked")
    )


def test_probes_are_reported_with_their_process():
    """Every field of a summary, under its own name."""
    state = known(small(), outcomes={("delivery", "classic", "q"): ReceivedOutcome(at=NOW, outcome=outcome())})
    status = SupervisedProcess(up=True, restarts=1, bad_lines=0, age_seconds=0.5)
    entry = parsed(documents.probes({"shop": state}, status, NOW))["clusters"][0]

    assert {"up": True, "restarts": 1, "age_seconds": 0.5} == entry["process"]
    assert {item.name for item in dataclasses.fields(outcome())} == set(entry["probes"][0])
    assert "running" == entry["probes"][0]["state"]


def test_layers_are_reported_with_what_they_follow_from():
    """A silent stream is left out, and its layer names what is missing."""
    streams = (confirming("unroutable", 0.001), confirming("transient", 0.003))
    seen = {(it.probe, it.stream, it.queue): ReceivedOutcome(at=NOW, outcome=it) for it in streams}
    state = dataclasses.replace(NOTHING, outcomes=seen)
    now, later = (parsed(documents.probes({"shop": state}, None, at))["clusters"][0]["layers"] for at in (NOW, LATER))
    reported = {layer["name"]: layer["seconds"] for layer in now if layer["seconds"] is not None}

    assert {"network+channel": 0.001, "queue": pytest.approx(0.002)} == reported
    assert [] == [layer for layer in now if layer["node"] or not layer["because"]]
    assert [] == later


def test_without_probes_the_process_is_down():
    """There is no process, and there were no restarts."""
    entry = parsed(documents.probes({"shop": NOTHING}, None, NOW))["clusters"][0]

    assert ({"up": False, "restarts": 0, "age_seconds": None}, []) == (entry["process"], entry["probes"])


def test_what_is_read_seldom_does_not_make_findings_old():
    """Policies are read once a minute; with this age, fresh data would count as stale."""
    before = Part(value=(), at=Instant(wall=NOW.wall - 55, mono=NOW.mono - 55))
    seldom, often = small(policies=before), small(channels=before)
    ages = [
        parsed(documents.findings({"shop": known(snapshot)}, NOW))["clusters"][0]["age_seconds"]
        for snapshot in (seldom, often)
    ]

    assert [0.0, 55.0] == ages


def test_a_snapshot_is_reported_whole_with_its_ages():
    """The fields of the kernel's snapshot, and how old each part is; absent stays null."""
    some = small(health=Part())
    entry = parsed(documents.snapshots({"shop": known(some), "depot": NOTHING}, LATER))["clusters"][0]

    assert {*(item.name for item in dataclasses.fields(Snapshot)), "ages"} == set(entry)
    assert (60.0, None) == (entry["ages"]["queues"], entry["ages"]["health"])
    assert (7, None) == tuple(queue["messages"] for queue in entry["queues"]["value"])


def test_a_part_of_a_snapshot_is_what_was_requested():
    """The rest is not converted to JSON, because a snapshot of many queues is large."""
    entry = parsed(documents.snapshots({"shop": known(small())}, LATER, ("nodes", "health")))["clusters"][0]

    assert {"nodes", "health"} == set(entry["ages"])
    always = {"cluster", "taken", "hidden_queues", "prometheus", "exchange_publishes", "ages"}
    assert {*always, "nodes", "health"} == set(entry)


def test_bindings_are_reported_by_exchange():
    """JSON has no pairs as keys, so the counts are a list."""
    some = small(bindings=part(Bindings(counts={("/", "orders"): 2, ("/", ""): 3})))
    entry, none = (
        parsed(documents.snapshots({"shop": known(it)}, LATER, ("bindings",)))["clusters"][0]["bindings"]
        for it in (some, small(bindings=Part()))
    )

    assert [
        {"vhost": "/", "exchange": "", "bindings": 3},
        {"vhost": "/", "exchange": "orders", "bindings": 2},
    ] == entry["value"]["counts"]
    assert none["value"] is None


def test_mappings_of_any_kind_are_objects():
    """Read-only mappings of a snapshot have a JSON form, too."""
    assert {"a": {"b": 1}} == parsed({"a": MappingProxyType({"b": 1})})


def test_ready_means_that_every_cluster_has_answered():
    """A refusal counts as an answer; a first round without any answer does not."""
    state = StateStore(["shop", "depot"])
    state.put_snapshot(small("shop"))
    state.put_snapshot(Snapshot(cluster="depot", taken=NOW))
    waiting = ready(state)
    state.put_snapshot(Snapshot(cluster="depot", taken=NOW, overview=Part(error="refused")))

    assert (503, b"waiting for the first poll of: depot\n") == (waiting.status, waiting.body)
    assert 200 == ready(state).status


def test_a_sum_beyond_64_bits_is_a_gap():
    """As a number beyond 64 bits itself: JSON has no place for it, and the document stays whole."""
    document = {"all": 2**63 + 5, "part": [{"n": -(2**64)}, (2**63 - 1, True)], "queue": small().queues}

    found = orjson.loads(documents.as_json(document))

    assert (None, [{"n": None}, [2**63 - 1, True]]) == (found["all"], found["part"])
    assert "orders" == found["queue"]["value"][0]["name"]
