import pytest

from ackscope.records import Outcome, ProbeState
from exporter.exposition.encode import render
from exporter.probes_host.metric_specs import HISTOGRAMS
from exporter.probes_host.metrics import ProbeMetrics
from tests.unit.exporter.made import burst, message, outcome, promtool, step


def value(metrics, name, **labels):
    """One sample of the registry; None if there is none."""
    return metrics.registry.get_sample_value(name, labels)


STREAM = {"cluster": "shop", "probe": "confirm", "stream": "quorum", "queue_type": "quorum"}
MESSAGE = {**STREAM, "delivery_mode": "persistent", "payload": "<4KiB", "node": "rabbit@one"}


def test_every_outcome_exists_from_the_first_message():
    """The first nack is an increase and not a new series."""
    metrics = ProbeMetrics()
    metrics.messages("shop", [message()])

    assert {it.value: float(it is Outcome.ACKED) for it in Outcome} == {
        it.value: value(metrics, "ackscope_confirms_total", **STREAM, outcome=it.value) for it in Outcome
    }


def test_outcomes_exist_before_the_first_message_settles():
    """A stream that reports but settled nothing has correct zeros."""
    metrics = ProbeMetrics()
    metrics.outcomes("shop", [outcome()])
    labels = {"cluster": "shop", "probe": "delivery", "stream": "classic", "queue_type": "classic"}

    assert value(metrics, "ackscope_confirms_total", **labels, outcome="lost") == 0


def test_latency_and_response_are_separate():
    """Latency is from sent to settled, response from intended send time to settled."""
    metrics = ProbeMetrics()
    metrics.messages("shop", [message(confirm=0.5, response=2.5, send_delay=2.0)])

    assert value(metrics, "ackscope_confirm_latency_seconds_sum", **MESSAGE) == 0.5
    assert value(metrics, "ackscope_confirm_response_seconds_sum", **MESSAGE) == 2.5
    assert value(metrics, "ackscope_probe_send_delay_seconds_sum", **STREAM) == 2.0
    assert value(metrics, "ackscope_confirm_latency_seconds_bucket", **MESSAGE, le="0.5") == 1
    assert value(metrics, "ackscope_confirm_latency_seconds_bucket", **MESSAGE, le="0.2") == 0


def test_a_message_without_answer_is_counted_and_has_no_latency():
    """Undecided is an outcome without a duration."""
    metrics = ProbeMetrics()
    metrics.messages("shop", [message(outcome=Outcome.TIMED_OUT, confirm=None, response=None)])

    assert value(metrics, "ackscope_confirms_total", **STREAM, outcome="undecided") == 1
    assert value(metrics, "ackscope_confirm_latency_seconds_count", **MESSAGE) is None


@pytest.mark.parametrize(
    ("changes", "labels"),
    [
        ({"delivery_mode": 1}, {"delivery_mode": "transient"}),
        ({"payload_bytes": 4095}, {"payload": "<4KiB"}),
        ({"payload_bytes": 4096}, {"payload": ">=4KiB"}),
        ({"node": ""}, {"node": ""}),
    ],
)
def test_what_changes_the_path_is_a_label(changes, labels):
    """Persistence, size class and node separate latencies."""
    metrics = ProbeMetrics()
    metrics.messages("shop", [message(**changes)])

    assert value(metrics, "ackscope_confirm_latency_seconds_count", **{**MESSAGE, **labels}) == 1


def test_bursts_are_sizes_and_intervals():
    """The first burst of a channel has no interval."""
    metrics = ProbeMetrics()
    metrics.bursts("shop", [burst(interval=None, messages=3), burst(interval=0.2, messages=5)])
    labels = {**STREAM, "node": "rabbit@one"}

    assert value(metrics, "ackscope_confirm_batch_messages_sum", **labels) == 8
    assert value(metrics, "ackscope_confirm_batch_messages_bucket", **labels, le="4.0") == 1
    assert value(metrics, "ackscope_confirm_batch_interval_seconds_count", **labels) == 1


def test_totals_of_the_probe_grow_by_their_increase():
    """A total that is reported twice counts once."""
    metrics = ProbeMetrics()
    labels = {"cluster": "shop", "probe": "delivery", "stream": "classic", "queue_type": "classic"}
    for total in (2, 2, 5):
        metrics.outcomes("shop", [outcome(redeliveries=total, blocked_seconds=total / 2)])

    assert value(metrics, "ackscope_redeliveries_total", **labels) == 5
    assert value(metrics, "ackscope_connection_blocked_seconds_total", **labels) == 2.5


def test_totals_go_on_after_a_restart_of_the_probe_process():
    """The new process counts from zero; what it reports is added, however much it is."""
    metrics = ProbeMetrics()
    labels = {"cluster": "shop", "probe": "delivery", "stream": "classic", "queue_type": "classic"}
    metrics.outcomes("shop", [outcome(redeliveries=5)])
    metrics.restarted()
    metrics.outcomes("shop", [outcome(redeliveries=7)])

    assert value(metrics, "ackscope_redeliveries_total", **labels) == 12


def test_a_queue_that_moves_counts_nothing_twice():
    """Its node is a label elsewhere; the total is the stream's."""
    metrics = ProbeMetrics()
    labels = {"cluster": "shop", "probe": "delivery", "stream": "classic", "queue_type": "classic"}
    for node in ("", "rabbit@one", "rabbit@two"):
        metrics.outcomes("shop", [outcome(redeliveries=5, node=node)])

    assert value(metrics, "ackscope_redeliveries_total", **labels) == 5


def test_streams_of_several_nodes_add_up():
    """Each node's stream keeps its own total; the counter is of all."""
    metrics = ProbeMetrics()
    labels = {"cluster": "shop", "probe": "handshake", "stream": "handshake", "queue_type": "none"}
    for blocked in (1.0, 2.0):
        metrics.outcomes(
            "shop",
            [
                outcome(
                    probe="handshake",
                    stream="handshake",
                    queue_type="none",
                    queue="",
                    node=node,
                    blocked_seconds=blocked,
                )
                for node in ("", "rabbit@one", "rabbit@two")
            ],
        )

    assert value(metrics, "ackscope_connection_blocked_seconds_total", **labels) == 6


def test_every_block_counts_once():
    """However often it is reported while it lasts."""
    metrics = ProbeMetrics()
    labels = {"cluster": "shop", "probe": "delivery", "stream": "classic", "queue_type": "classic"}
    metrics.outcomes("shop", [outcome()])
    none = value(metrics, "ackscope_connection_blocks_total", **labels)
    for state in (ProbeState.BLOCKED, ProbeState.BLOCKED, ProbeState.RUNNING, ProbeState.BLOCKED):
        metrics.outcomes("shop", [outcome(state=state)])

    assert (0, 2) == (none, value(metrics, "ackscope_connection_blocks_total", **labels))


RTT = {"cluster": "shop", "probe": "rtt", "stream": "rtt", "step": "declare", "node": "rabbit@one"}


def test_a_step_has_both_outcomes_from_its_first_sight():
    """The first failure is an increase and not a new series."""
    metrics = ProbeMetrics()
    metrics.steps("shop", [step()])

    assert value(metrics, "ackscope_probe_steps_total", **RTT, outcome="ok") == 1
    assert value(metrics, "ackscope_probe_steps_total", **RTT, outcome="failed") == 0


def test_a_failed_step_is_counted_and_has_no_duration():
    """How long it takes to fail is not how long the step takes."""
    metrics = ProbeMetrics()
    metrics.steps("shop", [step(seconds=0.5), step(ok=False, seconds=9.0, reason="the queue is gone")])

    assert value(metrics, "ackscope_probe_steps_total", **RTT, outcome="failed") == 1
    assert value(metrics, "ackscope_probe_step_seconds_sum", **RTT) == 0.5


@pytest.mark.parametrize("spec", HISTOGRAMS, ids=lambda spec: spec.name)
def test_durations_are_distinguished_from_100_microseconds_to_a_minute(spec):
    """Classic histograms with one set of edges, so that streams can be laid over each other."""
    first, last = spec.buckets[0], spec.buckets[-1]

    assert spec.unit != "seconds" or (first, last) == (0.0001, 60.0)
    assert sorted(spec.buckets) == list(spec.buckets)


def test_what_sends_nothing_has_no_outcomes():
    """A probe of steps alone shows no zeros of messages."""
    metrics = ProbeMetrics()
    metrics.outcomes("shop", [outcome(probe="rtt", stream="rtt", queue_type="none")])
    labels = {"cluster": "shop", "probe": "rtt", "stream": "rtt", "queue_type": "none"}

    assert value(metrics, "ackscope_confirms_total", **labels, outcome="acked") is None


def test_what_a_probe_does_not_await_has_no_sample():
    """The confirm probe consumes nothing: no zero for its redeliveries."""
    metrics = ProbeMetrics()
    metrics.outcomes("shop", [outcome(probe="confirm", redeliveries=None, missing=None)])
    labels = {"cluster": "shop", "probe": "confirm", "stream": "classic", "queue_type": "classic"}

    assert value(metrics, "ackscope_redeliveries_total", **labels) is None
    assert value(metrics, "ackscope_connection_blocked_seconds_total", **labels) == 0


def test_a_cluster_that_is_forgotten_has_no_series_and_no_memory():
    """Should it come back, its totals are counted from zero; the other cluster's go on."""
    metrics = ProbeMetrics()
    for cluster in ("shop", "depot"):
        metrics.messages(cluster, [message()])
        metrics.bursts(cluster, [burst()])
        metrics.steps(cluster, [step()])
        metrics.outcomes(cluster, [outcome(redeliveries=3)])
    metrics.forget("shop")
    text = render(metrics.registry.collect())
    metrics.outcomes("shop", [outcome(redeliveries=5)])
    labels = {"probe": "delivery", "stream": "classic", "queue_type": "classic"}

    assert 'cluster="shop"' not in text
    assert text.count('cluster="depot"') > 10
    assert value(metrics, "ackscope_redeliveries_total", cluster="shop", **labels) == 5
    assert value(metrics, "ackscope_redeliveries_total", cluster="depot", **labels) == 3


def test_promtool_has_nothing_against_it():
    """Names, types, helps and histograms are in order."""
    metrics = ProbeMetrics()
    metrics.messages("shop", [message(), message(delivery=0.01)])
    metrics.bursts("shop", [burst()])
    metrics.steps("shop", [step(), step(ok=False, seconds=None, reason="timed out")])
    metrics.outcomes("shop", [outcome(), outcome(queue="", state=ProbeState.BLOCKED)])

    assert "" == promtool(render(metrics.registry.collect()))
