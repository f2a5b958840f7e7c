import pytest

from tests.unit.diagnosis.pictures import channel, connection, consumer, film, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "stream-reader-skips"
NAME = "audit.log"


def read(t, *, on=15.0, off=10.0, rate=15.0, offset="next", others=0, pace=1e9, keeps=False):
    """A stream whose reader is there for `on` seconds and away for `off` seconds, in turn.

    Args:
        t: second of the film.
        on: seconds for which it is there.
        off: seconds for which it is away.
        rate: messages published a second.
        offset: that it asks for.
        others: other readers, which are there all the time.
        pace: the most messages it takes a second.
        keeps: whether it is sent what was published while it was away.
    """
    rounds, phase = divmod(t, on + off)
    there = phase < on
    served = rounds * on + min(phase, on)
    sent = int(rate * t) if keeps and there else int(min(rate, pace) * served)
    stream = queue(
        NAME,
        type="stream",
        messages=int(100 + rate * t),
        messages_ready=int(100 + rate * t),
        messages_unacked=0,
        consumers=int(there) + others,
        stats=stats(publish=int(100 + rate * t), deliver=sent, ack=sent),
    )
    number = int(rounds)
    peer = f"10.0.0.9:{41000 + number} -> 10.0.0.1:5672"
    parts = {"queues": (stream,), "consumers": (), "channels": (), "connections": ()}
    if there:
        parts["consumers"] = (
            consumer(NAME, channel_name=f"{peer} (1)", connection_name=peer, stream_offset=offset, prefetch_count=100),
        )
        parts["channels"] = (channel(f"{peer} (1)", connection_name=peer, consumer_count=1),)
        parts["connections"] = (connection(peer, client_name="audit-indexer"),)
    return parts


@pytest.mark.parametrize(("on", "off", "rate"), [(15.0, 10.0, 15.0), (20.0, 20.0, 4.0), (40.0, 15.0, 200.0)])
@pytest.mark.parametrize("offset", ["next", None])
def test_what_is_published_while_the_reader_is_away_is_a_warning(on, off, rate, offset):
    """At other rates and rhythms; no offset is the same as next."""
    until = 4 * (on + off) + 10
    finding = one(RULE, look(film(lambda t: read(t, on=on, off=off, rate=rate, offset=offset), until=until)))

    assert ("warning", NAME, ["audit-indexer"]) == (finding.severity, finding.subject.name, finding.facts["clients"])
    assert 0.7 * 4 * off * rate <= finding.facts["missed"] <= 4 * off * rate + 5 * rate


@pytest.mark.parametrize(
    "film_of",
    [
        lambda t: read(t, off=0.0),
        lambda t: read(t, offset="first", keeps=True),
        lambda t: read(t, offset=4711, keeps=True),
        lambda t: read(t, others=1),
        lambda t: read(t, on=100.0),
        lambda t: read(t, off=0.0, pace=5.0),
        lambda t: read(t, rate=0.0),
    ],
    ids=["always there", "from the first", "from its offset", "others read", "a deployment", "slow", "quiet"],
)
def test_what_looks_like_it_is_not_reported(film_of):
    """A reader that has its offset is sent everything."""
    assert [] == of(RULE, look(film(film_of, until=120)))


def test_two_returns_are_information():
    """A deployment that was repeated."""
    assert [("info", NAME)] == of(RULE, look(film(read, until=55)))
