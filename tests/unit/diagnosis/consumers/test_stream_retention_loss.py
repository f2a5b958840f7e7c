"""Readers of a stream whose next messages were deleted."""

from dataclasses import replace

import pytest

from diagnosis.rules.consumers.stream_retention_loss import NAME
from tests.unit.diagnosis.consumers.results import found
from tests.unit.diagnosis.consumers.test_stream_readers import frame
from tests.unit.diagnosis.pictures import channel, connection, consumer, film, full_text, look, queue, stats

LIMITED = {"x-max-length-bytes": 400_000}


def reads(t, *, jump=0, published=10_000, arguments=None, messages=1000, **fields):
    """It is sent 40 in 5 s; from the 30th second on it has jumped over so many."""
    sent = 1000 + 8 * int(t)
    made = frame(sent, 0, **fields)
    (stream,), (reader,) = made["queues"], made["streams"].consumers
    offset = sent + 5000 + (jump if t >= 30 else 0)
    moved = {"offset": offset, "offset_lag": published + 100 * int(t) - offset}
    return {
        **made,
        "queues": (replace(stream, messages=messages, arguments=LIMITED if arguments is None else arguments),),
        "streams": replace(made["streams"], consumers=(replace(reader, **moved),)),
    }


def mine(window):
    """The findings of this rule."""
    return [each for each in look(window).findings if each.rule == NAME]


def test_a_reader_that_was_overtaken_is_named():
    """It went on 3,000 messages later, at the begin of the stream."""
    verdict = look(film(lambda t: reads(t, jump=3000), until=60))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert ("critical", "events") == (finding.severity.value, finding.subject.name)
    assert ("billing",) == finding.involved.clients
    assert 3000 == finding.facts["missed"]
    for words in ("'billing'", "missed about 3,000 messages", "keeps 391 KiB", "max-length-bytes"):
        assert words in full_text(finding)


def consequences(verdict):
    """All findings below others."""
    return [each for cause in verdict.findings for each in cause.consequences]


def test_later_it_is_a_warning():
    """It happened two minutes ago."""
    verdict = look(film(lambda t: reads(t, jump=3000), until=160))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert "warning" == finding.severity.value


@pytest.mark.parametrize(
    "calm",
    [
        reads,
        # The broker's own chunks.
        lambda t: reads(t, jump=60),
        lambda t: reads(t, jump=3000, filtered=True),
        # It keeps everything, so nothing was deleted.
        lambda t: reads(t, jump=3000, arguments={"x-queue-type": "stream"}),
        # It is far from the begin.
        lambda t: reads(t, jump=3000, messages=900_000),
    ],
    ids=["no jump", "few", "filter", "no retention", "not at the begin"],
)
def test_jumps_that_prove_nothing(calm):
    """Without evidence of a deletion there is no loss."""
    assert NAME not in {each[0] for each in found(look(film(calm, until=60)))}


def over_amqp(t, *, rate=40.0, reads=8.0, kept=240, readers=1, prefetch=10, **fields):
    """Readers over AMQP 0-9-1: the broker tells no offset of them, only what it sent on each channel."""
    sent = stats(deliver=int(reads * t), ack=int(reads * t))
    total = stats(publish=int(rate * t), deliver=readers * int(reads * t), ack=readers * int(reads * t))
    limited = queue("events", type="stream", arguments=LIMITED, consumers=readers, stats=total)
    peers = [f"10.0.0.{7 + number}:50001 -> 10.0.0.1:5672" for number in range(readers)]
    return {
        "queues": (replace(limited, messages=kept, messages_ready=kept, messages_unacked=0),),
        "consumers": tuple(
            consumer("events", channel_name=f"{peer} (1)", connection_name=peer, prefetch_count=prefetch, **fields)
            for peer in peers
        ),
        "channels": tuple(channel(f"{peer} (1)", connection_name=peer, stats=sent) for peer in peers),
        "connections": tuple(
            connection(peer, client_name=f"loader-{place}", connected_at=0.0) for place, peer in enumerate(peers)
        ),
    }


@pytest.mark.parametrize(("readers", "rate"), [(1, 40.0), (3, 100.0)])
def test_a_reader_over_amqp_091_is_judged_by_a_balance(readers, rate):
    """It is sent 8 a second, and the stream keeps 240: the rest is gone unread. With several, their channels tell."""
    verdict = look(film(lambda t: over_amqp(t, readers=readers, rate=rate), until=90))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert ("critical", "events") == (finding.severity.value, finding.subject.name)
    assert tuple(f"loader-{place}" for place in range(readers)) == finding.involved.clients
    assert 0 < finding.facts["missed"] <= (rate - 8) * 90 - 240
    assert "at least" in full_text(finding)
    assert "list_stream_consumers" not in full_text(finding)


def two_readers(t, *, rate=80.0, slow=25.0, offset="first", kept=900, names=("ml-features", "click-sink")):
    """One reader is slower than the publishers, the other keeps up; both began with the first message."""
    made = over_amqp(t, rate=rate, readers=2, kept=kept, stream_offset=offset)
    speeds = (slow, rate)
    channels = tuple(
        replace(each, stats=stats(deliver=int(speed * t), ack=int(speed * t)))
        for each, speed in zip(made["channels"], speeds, strict=True)
    )
    (stream,) = made["queues"]
    total = stats(publish=int(rate * t), deliver=int((slow + rate) * t), ack=int((slow + rate) * t))
    connections = tuple(replace(each, client_name=name) for each, name in zip(made["connections"], names, strict=True))
    return {**made, "channels": channels, "queues": (replace(stream, stats=total),), "connections": connections}


@pytest.mark.parametrize(("rate", "slow", "kept"), [(80.0, 25.0, 900), (10.0, 2.0, 200), (500.0, 30.0, 9000)])
def test_one_slow_reader_of_several_is_named(rate, slow, kept):
    """Its channel tells all that it was sent since it connected, although channels are read for half a minute only."""
    verdict = look(film(lambda t: two_readers(t, rate=rate, slow=slow, kept=kept), until=110))
    finding = next(each for each in (*verdict.findings, *consequences(verdict)) if each.rule == NAME)

    assert ("ml-features",) == finding.involved.clients
    assert 0 < finding.facts["missed"] <= (rate - slow) * 110 - kept


@pytest.mark.parametrize("fields", [{"slow": 79.0}, {"offset": "next", "kept": 3000}, {"kept": 6000}])
def test_several_readers_that_may_still_read_all_are_not_named(fields):
    """One keeps up, one may have subscribed late, and of one all is stored."""
    verdict = look(film(lambda t: two_readers(t, **fields), until=110))

    assert NAME not in {each[0] for each in found(verdict)}


@pytest.mark.parametrize(
    "calm",
    [
        # It keeps up, and retention deletes what it has read.
        lambda t: over_amqp(t, reads=40.0),
        # It falls behind, and nothing has been deleted yet.
        lambda t: over_amqp(t, kept=int(32 * t)),
        # It asked for a part of the messages.
        lambda t: over_amqp(t, filtered=True),
        # It has just subscribed, to a stream that was filled before.
        lambda t: over_amqp(t, readers=int(t > 80)),
    ],
    ids=["keeps up", "stored", "filter", "new"],
)
def test_what_proves_no_loss_of_a_reader_over_amqp_091(calm):
    """A lower bound: what may be stored or was sent is not missed."""
    assert NAME not in {each[0] for each in found(look(film(calm, until=90)))}
