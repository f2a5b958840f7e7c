from dataclasses import replace

import pytest

from ackscope.clock import Instant
from ackscope.findings import Inconclusive
from ackscope.records import Batching, BatchingKind, ProbeState, Quantiles
from ackscope.snapshot import Part, Queue, Snapshot
from ackscope.triage import Triage
from diagnosis.window import Window
from exporter.broker.queue_reader import QueueMode
from exporter.broker.queue_store import DetailCoverage
from exporter.exposition.cardinality.selection import CardinalityLimits
from exporter.exposition.encode import render
from exporter.exposition.live import confirming, findings, landing, outcomes, polls, process
from exporter.exposition.live.landing import LandingCounts
from exporter.exposition.live.process import SupervisedProcess
from exporter.polling.poller import PollerStats
from exporter.polling.schedule import PollStats
from exporter.runtime.state import ClusterState, ReceivedOutcome
from tests.unit.exporter.made import NOW, Verdicts, finding, outcome, part, promtool, small
from tests.unit.exporter.made import confirming as confirming_stream


def values(metrics):
    """Metric name and label values -> value."""
    return {(sample.name, *sample.labels.values()): sample.value for metric in metrics for sample in metric.samples}


def known(snapshot, **more):
    """What is known of one cluster."""
    return ClusterState(window=Window.empty("shop").add(snapshot), **more)


LATER = Instant(wall=NOW.wall + 60, mono=NOW.mono + 60)


def test_the_age_of_a_reading_grows():
    """A broker that is away leaves its last reading, and its age."""
    snapshot = small(queues=replace(small().queues, error="connection refused"))
    seen = values(polls.collect({"shop": known(snapshot)}, {}, LATER))

    assert seen["ackscope_poll_age_seconds", "shop", "queues"] == 60
    assert seen["ackscope_poll_success", "shop", "queues"] == 0
    assert seen["ackscope_poll_success", "shop", "nodes"] == 1


def test_before_the_first_reading_there_is_no_age():
    """A broker that was never reached has failed, and has no age; one not yet asked has neither."""
    snapshot = Snapshot(cluster="shop", taken=NOW, overview=Part(error="connection refused"))
    seen = values(polls.collect({"shop": known(snapshot)}, {}, LATER))

    assert {("ackscope_poll_success", "shop", "overview"): 0} == seen


def test_polls_are_counted_by_family_and_gaps_by_field():
    """The poller's counts are exported; values that could not be decoded are counted by field."""
    counts = PollStats(attempts=3, failures=1, bytes_total=9, cost_seconds=1.5, requests=4, interval=20.0)
    stats = {"shop": PollerStats(families={"queues": counts}, budget=0.05, spent=0.02)}
    gaps = small(queues=part((), gaps={"memory": 2}))
    seen = values(polls.collect({"shop": known(gaps)}, stats, NOW))

    assert seen["ackscope_poll_attempts_total", "shop", "queues"] == 3
    assert seen["ackscope_poll_failures_total", "shop", "queues"] == 1
    assert seen["ackscope_poll_received_bytes_total", "shop", "queues"] == 9
    assert seen["ackscope_poll_cost_seconds_total", "shop", "queues"] == 1.5
    assert seen["ackscope_poll_requests_total", "shop", "queues"] == 4
    assert seen["ackscope_poll_interval_seconds", "shop", "queues"] == 20
    assert (0.05, 0.02) == (seen["ackscope_poll_budget_ratio", "shop"], seen["ackscope_poll_spent_ratio", "shop"])
    assert ("ackscope_poll_duration_seconds", "shop", "queues") not in seen
    assert ("ackscope_poll_full_reading", "shop") not in seen
    assert seen["ackscope_decode_gaps", "shop", "queues", "memory"] == 2


def test_coverage_reports_how_well_statistics_of_queues_are_known():
    """After a full reading all queues have statistics as old as the list; otherwise count and age are exported."""
    snapshot = small(queues=part((Queue(vhost="/", name="a"), Queue(vhost="/", name="b"))))
    full = PollerStats(families={}, budget=0.05, mode=QueueMode.FULL)
    coverage = DetailCoverage(queues=9, detailed=5, oldest=LATER.mono - 30, median=LATER.mono - 20)
    totals = replace(full, mode=QueueMode.TOTALS, coverage=coverage)
    found = [
        values(polls.collect({"shop": known(snapshot)}, {"shop": stats}, LATER))
        for stats in (full, totals, replace(totals, coverage=None))
    ]
    names = ("full_reading", "detailed_queues", "details_oldest_seconds", "details_median_seconds")
    reported = [[seen.get((f"ackscope_poll_{name}", "shop")) for name in names] for seen in found]
    age = found[0]["ackscope_poll_age_seconds", "shop", "queues"]

    assert [[1, 2, age, age], [0, 5, 30, 20], [0, None, None, None]] == reported


def test_findings_are_series():
    """Each finding is a series by rule and subject; so is each inconclusive rule, unless that is permanent."""
    gap = Inconclusive(rule="memory-alarm", reason="no_alarm_check")
    never = Inconclusive(rule="slow-disk", reason="no_disk_latency", permanent=True)
    verdict = Verdicts(findings=(finding(), finding()), inconclusive=(gap, gap, never)).of("shop")
    seen = values(
        findings.collect({"shop": known(small(), verdict=verdict, diagnosis_seconds=0.1)}, CardinalityLimits())
    )

    assert seen["ackscope_finding", "shop", "no-consumer", "warning", "queue", "/", "orders"] == 1
    assert ["memory-alarm"] == [key[-1] for key in seen if key[0] == "ackscope_diagnosis_cannot_tell"]
    assert seen["ackscope_diagnosis_duration_seconds", "shop"] == 0.1


def test_what_the_caps_leave_out_is_counted():
    """The worst finding is shown; those beyond the cap are counted."""
    other = finding(subject=replace(finding().subject, name="other"))
    verdict = Verdicts(findings=(finding(), other)).of("shop")
    limits = CardinalityLimits(findings=1)
    seen = values(findings.collect({"shop": known(small(), verdict=verdict)}, limits))

    assert ["orders"] == [key[-1] for key in seen if key[0] == "ackscope_finding"]
    assert seen["ackscope_dropped_findings", "shop"] == 1


def test_muted_findings_are_counted_until_the_mute_ends():
    """They are active findings all the same."""
    states = {"shop": known(small(), verdict=Verdicts(findings=(finding(),)).of("shop"))}
    said = {finding().key: Triage(muted_until=LATER.iso())}

    def seen(wall):
        return values(findings.collect(states, CardinalityLimits(), lambda _: said, wall))

    assert 1 == len([key for key in seen(NOW.wall) if key[0] == "ackscope_finding"])
    assert [1, 0] == [seen(wall)["ackscope_muted_findings", "shop"] for wall in (NOW.wall, LATER.wall)]


def test_an_old_summary_says_nothing_of_now():
    """After 30 s only its age is shown, because a dead probe is no success."""
    state = known(
        small(), outcomes={("delivery", "classic", "q"): ReceivedOutcome(at=NOW, outcome=outcome(doubtful="late"))}
    )
    fresh = values(outcomes.collect({"shop": state}, NOW))
    old = values(outcomes.collect({"shop": state}, LATER))

    assert fresh["ackscope_probe_success", "shop", "delivery", "classic", ""] == 1
    assert fresh["ackscope_probe_doubtful", "shop", "delivery", "classic", ""] == 1
    assert fresh["ackscope_probe_loop_lag_seconds", "shop", "delivery", "classic", "", "p99"] == 0.0003
    assert {("ackscope_probe_outcome_age_seconds", "shop", "delivery", "classic", ""): 60.0} == old


def streaming(*streams):
    """A cluster whose probes just reported these summaries."""
    seen = {(it.probe, it.stream, it.queue or it.node): ReceivedOutcome(at=NOW, outcome=it) for it in streams}
    return {"shop": known(small(), outcomes=seen)}


def test_a_stream_is_in_one_state():
    """A blocked stream has the state blocked, and not only "not running"."""
    seen = values(outcomes.collect(streaming(outcome(state=ProbeState.BLOCKED)), NOW))
    states = {key[-1]: value for key, value in seen.items() if key[0] == "ackscope_probe_state"}

    assert {"connecting": 0, "running": 0, "blocked": 1, "failed": 0, "unsupported": 0} == states


def test_what_a_broker_does_not_support_has_neither_succeeded_nor_failed():
    """No alert on success or doubt can fire; the state says what it is, and the protocol is known."""
    seen = values(outcomes.collect(streaming(outcome(probe="settle", state=ProbeState.UNSUPPORTED), outcome()), NOW))
    mine = {(key[0], key[-1]): value for key, value in seen.items() if key[2] == "settle"}

    assert not {name for name, _ in mine} & {"ackscope_probe_success", "ackscope_probe_doubtful"}
    assert 1 == mine["ackscope_probe_state", "unsupported"]
    assert 1 == mine["ackscope_probe_protocol", "amqp10"]
    assert 1 == seen["ackscope_probe_protocol", "shop", "delivery", "classic", "", "amqp091"]


def test_the_probes_own_consumer_is_held_against_its_prefetch():
    """This needs a limit: no limit is not a limit of 0."""
    held = outcome(probe="prefetch", prefetch=5, unacked=Quantiles(count=9, p50=4.0, p90=5.0, p99=5.0, max=5.0))
    seen = values(outcomes.collect(streaming(held, outcome()), NOW))

    assert {
        ("ackscope_prefetch_limit", "shop", "prefetch", "classic", ""): 5,
        ("ackscope_prefetch_unacked_messages", "shop", "prefetch", "classic", "", "p50"): 4.0,
        ("ackscope_prefetch_unacked_messages", "shop", "prefetch", "classic", "", "max"): 5.0,
    } == {key: value for key, value in seen.items() if key[0].startswith("ackscope_prefetch_")}


def test_layers_are_shown_where_they_can_be_reported():
    """A layer is the difference of two medians; without one of its streams or with an old summary it is absent."""
    state = streaming(confirming_stream("unroutable", 0.001), confirming_stream("transient", 0.003))
    seen = values(confirming.collect(state, NOW))

    assert {
        ("ackscope_confirm_layer_seconds", "shop", "network+channel", ""): 0.001,
        ("ackscope_confirm_layer_seconds", "shop", "queue", ""): pytest.approx(0.002),
    } == seen
    assert {} == values(confirming.collect(state, LATER))


@pytest.mark.parametrize(("fsync", "write"), [(True, "fsync"), (False, "flush")])
def test_a_sync_is_named_for_what_this_broker_does(fsync, write):
    """The word fsync is used only if the broker calls fsync before it confirms."""
    batching = Batching(kind=BatchingKind.SYNC, interval=0.2, confidence=0.9, fsync=fsync)
    seen = values(confirming.collect(streaming(confirming_stream("quorum", 0.2, batching=batching)), NOW))
    stream = ("shop", "confirm", "quorum", "")

    assert 0.2 == seen["ackscope_confirm_sync_interval_seconds", *stream, write]
    assert 0.9 == seen["ackscope_confirm_batching_confidence_ratio", *stream]
    assert ["sync"] == [key[-1] for key, value in seen.items() if key[0] == "ackscope_confirm_batching" and value]


def test_without_sync_there_is_no_interval():
    """If the probe's window limits the groups, they show nothing about the disk."""
    batching = Batching(kind=BatchingKind.WINDOW_LIMITED, confidence=0.5)
    seen = values(confirming.collect(streaming(confirming_stream("quorum", 0.2, batching=batching)), NOW))

    assert [] == [key for key in seen if key[0] == "ackscope_confirm_sync_interval_seconds"]
    assert 1 == seen["ackscope_confirm_batching", "shop", "confirm", "quorum", "", "window-limited"]


def test_no_two_series_have_the_same_labels():
    """Streams of named nodes beside those of the cluster's address: Prometheus refuses a scrape with doubles."""
    nodes = ("", "rabbit@one", "rabbit@two")
    streams = [
        confirming_stream(
            stream,
            0.001,
            node=node,
            batching=Batching(),
            queue="" if stream == "unroutable" else f"ackscope.probe.confirm.{stream}" + (f"@{node}" if node else ""),
        )
        for stream in ("unroutable", "transient", "classic", "quorum")
        for node in nodes
    ]
    state = streaming(
        *streams, *(outcome(probe="handshake", stream="handshake", queue="", node=node) for node in nodes)
    )
    families = [*outcomes.collect(state, NOW), *confirming.collect(state, NOW)]
    samples = [(it.name, *it.labels.values()) for family in families for it in family.samples]

    assert len(set(samples)) == len(samples)
    assert "" == promtool(render(families))


def test_process_and_landing_are_shown_where_there_are_any():
    """An exporter without probes or landing shows no zeros for them."""
    status = SupervisedProcess(up=False, restarts=2, bad_lines=1, age_seconds=None)
    counts = LandingCounts(rows={"ack_bursts": 4}, files=1, dropped={("channel_samples", "cap"): 2}, last_write_age=3.5)

    assert values(process.collect(status))[("ackscope_probe_process_restarts_total",)] == 2
    assert ["ackscope_build"] == [metric.name.removesuffix("_info") for metric in process.collect(None)]
    assert values(landing.collect(counts))["ackscope_landing_rows_total", "ack_bursts"] == 4
    assert values(landing.collect(counts))["ackscope_landing_dropped_rows_total", "channel_samples", "cap"] == 2
    assert values(landing.collect(counts))[("ackscope_landing_last_write_age_seconds",)] == 3.5
    assert ("ackscope_landing_kept_bytes",) not in values(landing.collect(counts))
    assert [] == landing.collect(None)
