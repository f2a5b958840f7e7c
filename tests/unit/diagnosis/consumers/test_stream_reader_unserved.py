import pytest

from tests.unit.diagnosis.pictures import WALL, channel, connection, consumer, film, full_text, look, queue, stats
from tests.unit.diagnosis.queues.films import of, one

RULE = "stream-reader-unserved"
NAME = "prices"
PEER = "10.0.0.9:41000 -> 10.0.0.1:5672"


def prices(
    *,
    rate=8.0,
    share=1.0,
    ends=30.0,
    after=None,
    filtered=True,
    prefetch=50,
    unacked=0,
    offset="first",
    others=0,
    unsent=0,
    kind="stream",
    serves=1,
):
    """A stream whose reader is sent a share of all messages until second `ends`; from then on `after` are published."""
    later = rate if after is None else after

    def frame(t):
        here, there = min(t, ends), max(0.0, t - ends)
        published, sent = int(100 + rate * here + later * there), int(rate * share * here)
        own = stats(deliver=sent, ack=sent)
        total = stats(publish=published, deliver=sent + others * published, ack=sent + others * published)
        stream = queue(
            NAME,
            type=kind,
            messages=published,
            messages_ready=published,
            messages_unacked=unacked,
            consumers=1 + others,
            stats=total,
        )
        fields = {"channel_name": f"{PEER} (1)", "connection_name": PEER, "prefetch_count": prefetch}
        readers = [consumer(NAME, filtered=filtered, stream_offset=offset, **fields)]
        readers += [consumer(f"other{number}", tag=f"t{number}", **fields) for number in range(1, serves)]
        return {
            "queues": (stream,),
            "consumers": tuple(readers),
            "channels": (channel(f"{PEER} (1)", messages_unacked=unacked, stats=own),),
            "connections": (connection(PEER, client_name="desk", send_pend=unsent, connected_at=WALL - 300),),
        }

    return frame


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rate": 200.0},
        {"share": 0.2},
        {"rate": 2.0},
        {"unacked": 12},
        {"offset": None},
        {"after": 30.0},
    ],
    ids=["all messages", "quick", "a fifth", "slow", "holds some", "from the newest on", "more than before"],
)
def test_a_filter_that_matches_nothing_any_more_is_a_warning(options):
    """It has credit, and as many messages are published as when it was sent some."""
    finding = one(RULE, look(film(prices(**options), until=90)))

    assert ("warning", NAME) == (finding.severity.value, finding.subject.name)
    assert ["desk"] == finding.facts["clients"]
    for words in ("'desk'", "it asks for a filter", "x-stream-match-unfiltered"):
        assert words in full_text(finding)


@pytest.mark.parametrize(
    "options",
    [
        {"filtered": False},
        {"after": 3.0},
        {"ends": 0.0},
        {"share": 0.01},
        {"filtered": False, "offset": 4_000_000_000, "ends": 0.0},
    ],
    ids=["no filter", "its publisher pauses", "nothing since it came", "seldom", "a time in the future"],
)
def test_what_may_be_meant_is_information(options):
    """The broker finds nothing for the reader, and that may be right."""
    assert [("info", NAME)] == of(RULE, look(film(prices(**options), until=90)))


def test_two_readings_are_enough_for_information():
    """The reader was sent messages before; whether they were steady is not known."""
    finding = one(RULE, look(film(prices(), until=90, start=75)))

    assert "info" == finding.severity.value
    assert "harmless if such messages come seldom" in full_text(finding)


@pytest.mark.parametrize(
    "options",
    [
        {"ends": 1e9},
        {"ends": 1e9, "share": 0.1},
        {"after": 0.0},
        {"unacked": 50},
        {"prefetch": 0},
        {"unsent": 40_000},
        {"kind": "quorum"},
        {"serves": 2},
        {"ends": 85.0},
    ],
    ids=[
        "served",
        "served a share",
        "nothing published",
        "its prefetch is used up",
        "no prefetch",
        "does not read its socket",
        "no stream",
        "its channel serves others",
        "for five seconds",
    ],
)
def test_what_looks_like_it_is_not_reported(options):
    """The broker serves it, may not, or has nothing to send."""
    assert [] == of(RULE, look(film(prices(**options), until=90)))


def test_one_of_several_readers_is_judged_by_its_channel():
    """The counters of the stream are those of all readers."""
    assert [("info", NAME)] == of(RULE, look(film(prices(others=1), until=90)))
