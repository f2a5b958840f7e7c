import pytest

from diagnosis.text import _text
from tests.unit.diagnosis.pictures import film, look, queue, stats, text
from tests.unit.diagnosis.queues.films import flowing, frame, of, one

RULE = "dead-letters-expire"
WORK = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "failed"}


def shop(t, *, ttl=10_000, rejected=4.0, **fields):
    """Half of the messages of a queue are rejected; their dead letters expire."""
    ready = int(rejected * min(t, ttl / 1000))
    arguments = {} if ttl is None else {"x-message-ttl": ttl}
    failed = queue("failed", **{"messages_ready": ready, "consumers": 0, "arguments": arguments, **fields})
    return frame(flowing(t, "work", acked=8.0 - rejected, rejected=rejected, arguments=WORK, consumers=1), failed)


def shot(until=90, **fields):
    """The result after this many seconds."""
    return look(film(lambda t: shop(t, **fields), until=until))


def test_dead_letters_that_expire_soon_are_a_warning():
    """At least as many as the ledgers of their sources show, without what is still there."""
    assert [] == of(RULE, shot(10))
    finding = one(RULE, shot())
    assert ("warning", "failed", 10.0, ["work"]) == (
        finding.severity,
        finding.subject.name,
        finding.facts["ttl_seconds"],
        finding.facts["sources"],
    )
    assert 200 <= finding.facts["lost"] <= 320


def test_a_retention_of_an_hour_or_more_is_information():
    """It may be on purpose. Its queue is full, so as many expire as arrive."""
    assert [("info", "failed")] == of(RULE, shot(ttl=3_600_000, messages_ready=14_400))


@pytest.mark.parametrize(
    "fields",
    [
        {"rejected": 0.0},
        {"arguments": {}},
        {"arguments": {"x-message-ttl": 10_000, "x-max-length": 40}},
        {"arguments": {"x-message-ttl": 10_000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}},
        {"consumers": 1},
        {"stats": stats(deliver=40, ack=40)},
    ],
    ids=["none arrive", "no TTL", "a length limit", "a retry queue", "consumed", "was consumed"],
)
def test_these_queues_lose_no_dead_letters_to_a_ttl(fields):
    """Or another rule is about them."""
    assert [] == of(RULE, shot(**fields))


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ at_least(60, 60) }}", "all 60"),
        ("{{ at_least(44, 1060) }}", "at least 44 of 1,060"),
        ("{{ more_than(-4) }} before", "4 fewer than before"),
        ("{{ more_than(1200) }} before", "1,200 more than before"),
        ("{{ more_than(0) }} before", "as many as before"),
    ],
)
def test_numbers_are_compared_in_words_that_fit_them(template, expected):
    """Never "-4 more", never "60 or more of 60"."""
    assert expected == _text(template, {})


@pytest.mark.parametrize(("rejected", "ttl"), [(4.0, 10_000), (1.5, 20_000), (7.0, 5_000)])
def test_it_says_how_many_probably_expired_beside_how_many_did_so_at_least(rejected, ttl):
    """The delay between counters makes the proven number much too small where few of many are rejected."""
    finding = one(RULE, shot(rejected=rejected, ttl=ttl))
    expired = rejected * (90 - ttl / 1000)

    assert finding.facts["lost"] <= finding.facts["likely_lost"]
    assert finding.facts["likely_lost"] == pytest.approx(expired, abs=5 * rejected)
    assert f"at least {finding.facts['lost']}, probably {finding.facts['likely_lost']}," in text(finding).summary
