import gzip
from dataclasses import replace

import orjson
import pytest

from ackscope.errors import DataError
from ackscope.snapshot import Queue
from ackscope.topology import Binding, Bindings, Link, Policy
from diagnosis.engine import diagnose
from diagnosis.thresholds import Thresholds
from diagnosis.window import Window
from exporter.api.bundle import DiagnosisBundle, pack_bundle, unpack_bundle
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, moment, queue, stuck
from tests.unit.exporter.made import NOW, outcome, part, small


def bundle(window, **fields):
    """Return a bundle at the end of a window."""
    latest = window.latest
    return DiagnosisBundle(window=window, outcomes=(outcome(),), now=latest.taken, thresholds=Thresholds(), **fields)


def test_what_was_seen_is_judged_the_same_elsewhere():
    """Readings, probes, time and thresholds are all included, so the result is identical."""
    seen = bundle(film(stuck, until=120))
    read = unpack_bundle(pack_bundle(seen))

    assert seen == read
    here = diagnose(seen.window, seen.outcomes, seen.now, seen.thresholds)
    assert here == diagnose(read.window, read.outcomes, read.now, read.thresholds)
    assert "stuck-consumer" in [finding.rule for finding in here.findings]


def test_consumers_that_ended_come_back():
    """Lists of consumers that show them are older than the snapshots that are held in full."""

    def frame(t):
        return {
            "queues": (queue("jobs", consumers=int(t < 30), messages_ready=int(t)),),
            "consumers": (consumer("jobs"),) if t < 30 else (),
            "channels": (channel(consumer_count=int(t < 30)),),
            "connections": (connection(),),
        }

    window = film(frame, until=120)

    assert ["jobs"] == [each.consumer.queue for each in window.former]
    assert window == unpack_bundle(pack_bundle(bundle(window))).window


def test_every_part_of_a_snapshot_comes_back():
    """Also bindings, which are counted by pairs."""
    bindings = Bindings(
        counts={("/", "events"): 2, ("shop", ""): 1},
        listed=(Binding(vhost="/", source="events", destination="orders", destination_type="queue"),),
    )
    snapshot = small(
        bindings=part(bindings), policies=part((Policy(vhost="/", name="p", definition={"max-length": 1}),))
    )
    window = Window.empty("shop").add(snapshot)

    assert window == unpack_bundle(pack_bundle(bundle(window))).window


def test_nothing_that_looks_like_a_secret_is_in_the_file():
    """Whatever a user wrote into a name or an argument."""
    queue = Queue(
        vhost="/", name="amqp://u:hush1@host/x", arguments={"x-password": "hush2", "x-uri": "http://a:hush3@b"}
    )
    link = Link(kind="shovel", name="s", reason='cannot reach amqp://u:hush4@far:5672, said "no"')
    window = Window.empty("shop").add(small(queues=part((queue,)), links=part((link,))))
    text = gzip.decompress(pack_bundle(bundle(window))).decode()

    assert "hush" not in text
    assert "amqp://u:***@host/x" in text
    assert unpack_bundle(pack_bundle(bundle(window))).window.latest.links.value[0].reason.endswith('said "no"')


@pytest.mark.parametrize(
    ("content", "described"),
    [
        (b"", "not an ackscope bundle"),
        (b"PK\x03\x04", "not an ackscope bundle"),
        (gzip.compress(b"[]"), "not an ackscope bundle"),
        (gzip.compress(b"{"), "not an ackscope bundle"),
        (
            gzip.compress(orjson.dumps({"kind": "ackscope-bundle", "format": 9, "ackscope": "7.0"})),
            "by ackscope 7.0 in format 9",
        ),
        (gzip.compress(orjson.dumps({"kind": "ackscope-bundle", "format": 1})), "incomplete bundle"),
    ],
    ids=["empty", "zip", "list", "broken", "newer", "bare"],
)
def test_a_file_that_is_none_is_refused_in_one_line(content, described):
    """This includes renamed files of other kinds."""
    with pytest.raises(DataError) as caught:
        unpack_bundle(content)

    assert described in str(caught.value)
    assert "\n" not in str(caught.value)


def test_thresholds_that_another_version_has_are_ignored():
    """A bundle of yesterday's version is still read."""
    seen = bundle(film(stuck, until=30))
    document = orjson.loads(gzip.decompress(pack_bundle(seen)))
    document["thresholds"] |= {"of_another_version": {"some": 1}}
    document["thresholds"]["topology"]["renamed_since"] = 45.0

    assert seen == unpack_bundle(gzip.compress(orjson.dumps(document)))


def test_half_a_file_is_refused():
    """An example is an interrupted download."""
    content = pack_bundle(bundle(film(stuck, until=30)))

    with pytest.raises(DataError):
        unpack_bundle(content[: len(content) // 2])


def test_the_same_sight_is_the_same_file():
    """So that two of them can be compared."""
    seen = bundle(Window.empty("shop").add(small()))

    assert pack_bundle(seen) == pack_bundle(seen)
    assert pack_bundle(seen) != pack_bundle(replace(seen, now=moment(5)))
    assert NOW == seen.now


@pytest.mark.parametrize(
    "text", [b"[" * 5_000_000, b'{"a":' * 1_000_000, b"[" + b"0," * 3_000_000 + b"0]", b"[{}" + b",{}" * 2_000_000]
)
def test_a_file_that_needs_much_memory_is_refused(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is parsed."""
    monkeypatch.setattr("exporter.api.bundle.orjson.loads", lambda _: pytest.fail("it was parsed"))

    with pytest.raises(DataError, match="not an ackscope bundle"):
        unpack_bundle(gzip.compress(text))


def test_a_bundle_that_is_slightly_larger_than_what_is_always_read_is_read():
    """The bounds are those of a whole file, not of what it has beyond that size."""
    window = film(stuck, until=600)
    seen = bundle(window)
    queues = tuple(replace(window.latest.queues.value[0], name=f"orders-{number:04}") for number in range(800))
    full = replace(window, snapshots=(*window.snapshots[:-1], small(queues=part(queues))))
    content = pack_bundle(replace(seen, window=full))

    assert 1_000_000 < len(gzip.decompress(content)) < 1_600_000
    assert 800 == len(unpack_bundle(content).window.latest.queues.value)
