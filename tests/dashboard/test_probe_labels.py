from typing import Any

import pytest

from ackscope.records import Batching, BatchingKind, ProbeStep, Quantiles
from dashboard.data.model import ConfirmLayer
from dashboard.format import probe_labels
from dashboard.frames import confirm_frames
from tests.dashboard import answers


def test_an_expected_nack_is_not_a_fault() -> None:
    """An ack of the nack probe is listed next to the nacks."""
    well = probe_labels.detail(answers.nacked())
    ill = probe_labels.detail(answers.nacked(outcomes={"acked": 3, "nacked": 497}))

    assert well.startswith("nacked as expected: 500 of 500 settled · ack batches")
    assert ill.startswith("nacked as expected: 497 of 500 settled · acked 3 · ")


def test_another_nack_is_a_fault() -> None:
    """It is listed next to the acked messages."""
    reported = probe_labels.detail(answers.probe(outcomes={"acked": 70, "nacked": 12}))

    assert reported.startswith("acked 70 of 82 settled · nacked 12 · ")


def test_a_probe_of_steps_shows_no_messages() -> None:
    """It sends no counted messages; failed steps are shown with the reason."""
    failing = {"tcp": ProbeStep(attempts=9, failures=2, reason="connection refused"), "dns": ProbeStep(attempts=9)}
    outcome = answers.timing("handshake", steps=failing)

    assert "tcp max \N{EN DASH}, failed 2 of 9 · dns max \N{EN DASH} · own error: loop lag p99 0.2 ms" == (
        probe_labels.detail(outcome)
    )
    assert ["tcp: connection refused"] == probe_labels.failures(outcome)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"prefetch": 5, "unacked": Quantiles(count=9, p50=4.0, max=5.0)},
            "at most 5 unacked deliveries, prefetch 5",
        ),
        (
            {"batching": Batching(kind=BatchingKind.SYNC, interval=0.2, confidence=0.9, fsync=True)},
            "one fsync takes about 200 ms (confidence 90%)",
        ),
        (
            {"batching": Batching(kind=BatchingKind.SYNC, interval=0.2, confidence=0.9, fsync=False)},
            "one flush takes about 200 ms (confidence 90%)",
        ),
        ({"blocked_seconds": 240.0, "blocked_reason": "low on memory"}, "blocked for 4 min in total (low on memory)"),
    ],
)
def test_optional_details_of_a_stream(changes: dict[str, Any], text: str) -> None:
    """Only if there is something to show."""
    assert text in probe_labels.detail(answers.probe(**changes))
    assert text not in probe_labels.detail(answers.probe())


def test_batches_without_a_sync_show_no_time() -> None:
    """A window that limits them says nothing about the disk."""
    reported = probe_labels.detail(answers.probe(batching=Batching(kind=BatchingKind.WINDOW_LIMITED)))

    assert "flush" not in reported
    assert "fsync" not in reported


def test_known_layers_are_shown() -> None:
    """By node if there are several; unknown ones are in the table with a reason."""
    layers = (
        ConfirmLayer(name="queue", seconds=0.001, node="rabbit@one", because="a - b"),
        ConfirmLayer(name="queue", seconds=0.002, node="rabbit@two", because="a - b"),
        ConfirmLayer(name="store", node="rabbit@two", because="classic is doubtful"),
    )

    assert "Confirm latency by layer (median): queue on rabbit@one 1 ms, queue on rabbit@two 2 ms." == (
        probe_labels.layers(layers)
    )
    assert "classic is doubtful" == probe_labels.layer_rows(layers)[2]["From"]


def test_a_negative_layer_is_below_the_error() -> None:
    """It is no latency, neither in words nor as a bar."""
    layers = (ConfirmLayer(name="store", seconds=-0.000284, because="classic-large 1 ms - classic 1.3 ms"),)

    assert "Confirm latency by layer (median): store below the error." == probe_labels.layers(layers)
    assert "below the error" == probe_labels.layer_rows(layers)[0]["Median"]
    row = confirm_frames.layer_rows(layers).iloc[0]
    assert (True, "below the error: classic-large 1 ms - classic 1.3 ms") == (row.isna()["seconds"], row["because"])
    assert probe_labels.layers(layers[2:]) is None


def test_control_streams() -> None:
    """All streams of the confirm probe that are not named after their queue type."""
    controls = [it.stream for it in answers.all_probes() if probe_labels.is_control(it)]

    assert ["unroutable", "transient", "classic-large"] == controls
