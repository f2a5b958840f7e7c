from random import Random

import pytest
from pydantic import ValidationError

from ackscope.address import Address
from ackscope.clock import Instant
from ackscope.records import BatchingKind
from probes.catalogue.confirm import ConfirmSettings
from probes.confirm import LARGE, PATHS, streams
from probes.instrument import LoopLag
from probes.probe_stream import StreamContext
from probes.settings import AmqpServer


def made(*, once=False, **confirm):
    """Return the streams of a confirm probe with these settings, by name."""
    address = Address(scheme="amqp", host="h", port=5672, username="u", password="p", vhost="/")
    context = StreamContext(
        cluster="shop",
        server=AmqpServer(address),
        prefix="ackscope.probe",
        run_id="0" * 16,
        lag=LoopLag(0.0, span=60.0),
        random=Random(1),
        once=once,
    )
    settings = ConfirmSettings.model_validate(confirm)
    return {stream.stats.who.stream: stream for stream in streams(settings, context)}


def test_all_paths_are_measured_by_default():
    """The main streams run at the probe's rate, the streams for comparison at rates of their own."""
    found = made(rate=7, control_rate=3)

    assert list(PATHS) == list(found)
    assert {"classic": 7, "quorum": 7} == {
        name: stream.stats.who.rate for name, stream in found.items() if stream.stats.who.rate == 7
    }
    assert ["classic", "quorum"] == list(made(streams=["classic", "quorum", "classic"]))


def test_each_path_differs_in_one_thing():
    """The paths are: no queue, not persistent, the usual one, bodies too large for the queue index, other types."""
    found = {name: stream.stats.who for name, stream in made().items()}

    assert {name: (path.queue_type, path.delivery_mode) for name, path in PATHS.items()} == {
        name: (who.queue_type, who.delivery_mode) for name, who in found.items()
    }
    assert {64: 5, LARGE: 1} == {size: sum(who.payload_bytes == size for who in found.values()) for size in (64, LARGE)}
    assert found["unroutable"].queue == ""
    assert found["stream"].queue == "ackscope.probe.confirm.stream"


def test_a_stream_names_all_that_it_makes():
    """The names allow a sweep of all objects; the stream without a queue names nothing."""
    found = made(once=True)

    assert [] == list(found["unroutable"].queues)
    assert ["ackscope.probe.once.stream"] == list(found["stream"].queues)
    assert [f"ackscope.probe.once.{'0' * 16}.confirm.classic"] == list(found["classic"].queues)


def test_a_stream_that_is_not_known_is_refused():
    """The message lists the known streams."""
    with pytest.raises(ValidationError, match="'unroutable', 'transient', 'classic', 'classic-large'"):
        made(streams=["lazy"])


def test_batching_is_looked_at_about_once_a_second():
    """Without bursts, batching is reported as unknown."""
    stream = made()["quorum"]
    stream.tick(Instant(0.0, 10.0))
    first = stream.stats.batching
    stream.tick(Instant(0.5, 10.5))
    same = stream.stats.batching
    stream.tick(Instant(1.0, 11.0))

    assert first is not None
    assert first.kind is BatchingKind.UNKNOWN
    assert "at least 30 are needed" in first.because
    assert first is same
    assert stream.stats.batching is not first
