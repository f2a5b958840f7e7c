from dataclasses import replace

import pytest

from ackscope.records import ProbeOutcome, ProbeState, Quantiles
from probes.latency_layers import LEAST_MESSAGES, MEANINGS, decompose, largest

P50 = {
    "unroutable": 0.001,
    "transient": 0.002,
    "classic": 0.005,
    "classic-large": 0.006,
    "quorum": 0.302,
    "stream": 0.004,
}


def outcome(stream, p50, *, count=100, node="", doubtful=None, own=0.0001, **others):
    """One stream of the confirm probe."""
    made = ProbeOutcome(
        probe="confirm",
        stream=stream,
        queue_type="classic",
        vhost="/",
        queue="q",
        node=node,
        at=0.0,
        state=ProbeState.RUNNING,
        doubtful=doubtful,
        payload_bytes=4096 if stream == "classic-large" else 64,
        confirm=Quantiles(count=count, p50=p50, p90=p50, p99=p50, max=p50),
        send_delay=Quantiles(count=count, p50=own, p90=own, p99=own, max=own),
    )
    return replace(made, **others)


def everything(**changed):
    """All streams, with the changes to some."""
    return [changed.get(stream.replace("-", "_"), outcome(stream, p50)) for stream, p50 in P50.items()]


def test_each_layer_is_the_difference_of_two_streams():
    """Layers are in a fixed order, each with the values that it is computed from."""
    layers = decompose(everything())

    assert list(MEANINGS) == [layer.name for layer in layers]
    assert [layer.seconds for layer in layers] == pytest.approx([0.001, 0.001, 0.003, 0.001, 0.3, 0.003])
    assert layers[4].because == "quorum 302 ms - transient 2.00 ms"


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (None, "transient is not measured"),
        (outcome("transient", 0.002, state=ProbeState.BLOCKED), "transient is blocked"),
        (outcome("transient", 0.002, count=LEAST_MESSAGES - 1), "transient has only 29 confirmed messages"),
    ],
)
def test_a_layer_without_one_of_its_streams_is_withheld(stream, words):
    """The reason is given; the other layers are reported."""
    streams = [item for item in everything() if item.stream != "transient"] + ([] if stream is None else [stream])
    layers = {layer.name: layer for layer in decompose(streams)}

    withheld = {name for name, layer in layers.items() if layer.seconds is None}

    assert {"queue", "persist", "replicate"} == withheld
    assert all(words in layers[name].because for name in withheld)


def test_a_difference_within_the_probes_own_error_is_withheld():
    """A doubtful stream can still show differences far larger than its error."""
    doubtful = outcome("classic", 0.005, doubtful="the probe itself was slow", own=0.004)
    layers = {layer.name: layer for layer in decompose(everything(classic=doubtful))}

    assert layers["persist"].seconds is None
    assert "within the probe's own error of 4.00 ms" in layers["persist"].because
    assert layers["replicate"].seconds == pytest.approx(0.3)


def test_bodies_of_one_size_tell_nothing_of_the_store():
    """If the small bodies are as large, both go to the same store."""
    layers = {
        layer.name: layer for layer in decompose(everything(classic=outcome("classic", 0.005, payload_bytes=4096)))
    }

    assert layers["store"].seconds is None


def test_nodes_are_kept_apart():
    """A difference between two nodes is no layer."""
    layers = decompose([outcome("unroutable", 0.001, node="rabbit@a"), outcome("transient", 0.002, node="rabbit@b")])

    assert {"rabbit@a": 0.001, "rabbit@b": None} == {
        layer.node: layer.seconds for layer in layers if layer.name == "network+channel"
    }
    assert all(layer.seconds is None for layer in layers if layer.name == "queue")


def test_other_probes_have_no_layers():
    """The result is an empty list."""
    assert [] == decompose([outcome("classic", 0.001, probe="delivery")])


def test_what_stands_out_is_reported_and_whether_the_disk_of_a_classic_queue_is_it():
    """A quorum queue is slow and a classic one is fast, so the disk writes of the classic one are not the cause."""
    reported = largest(decompose(everything()))

    assert reported is not None
    assert "most of the time is in replicate (300 ms)" in reported
    assert "is not the cause" in reported


def test_a_slow_persist_is_not_excused():
    """If writing takes the time, the text must not exclude the disk."""
    reported = largest(decompose(everything(classic=outcome("classic", 0.2), quorum=outcome("quorum", 0.15))))

    assert reported == "most of the time is in persist (198 ms), replicate (148 ms)"


def test_nothing_stands_out_among_small_differences():
    """Differences of milliseconds do not matter, whatever their share."""
    assert largest(decompose(everything(quorum=outcome("quorum", 0.004)))) is None
    assert largest([]) is None
