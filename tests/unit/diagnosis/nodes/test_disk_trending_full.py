import pytest

from tests.unit.diagnosis.nodes.machines import GB, frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only, queue, text

RULE = "disk-trending-full"


def falling(start, a_minute, until, every=5.0, **fields):
    """A disk that the broker checks every 10 s, and whose free space falls by so much a minute."""
    free = lambda t: int(start - a_minute * (t // 10 * 10) / 60)  # noqa: E731
    return film(frame(disk_free=free, mem_used=0, mem_limit=1, **fields), until=until, every=every)


def test_a_fast_fall_is_reported_early_and_becomes_a_warning():
    """10 min to the limit: information after 20 s, a warning after 5 min."""
    early = only(look(falling(10 * GB, GB, until=45)))

    assert (RULE, "info", "early") == (early.rule, early.severity, early.certainty)
    assert 300.0 == early.facts["warning_after_seconds"]
    assert 540 < early.facts["eta_seconds"] < 600
    assert [(RULE, "warning", NODE)] == found(look(falling(10 * GB, GB, until=330)))


def test_the_largest_queue_of_the_node_is_named():
    """Together with what all its queues hold."""
    free = lambda t: int(10 * GB - GB * (t // 10 * 10) / 60)  # noqa: E731
    bare = frame(disk_free=free, mem_used=0, mem_limit=1)
    queues = (queue("small", message_bytes=1), queue("large", message_bytes=GB))
    facts = only(look(film(lambda t: {**bare(t), "queues": queues}, until=45))).facts

    assert ({"vhost": "/", "name": "large"}, GB + 1) == (facts["largest_queue"], facts["queue_bytes"])


@pytest.mark.parametrize("held", [441_000, GB // 20], ids=["hardly any", "some"])
def test_queues_that_hold_less_than_is_missing_are_not_the_reason(held):
    """Another program fills the disk: nobody should purge a queue for that."""
    free = lambda t: int(60 * GB - 2 * GB * (t // 10 * 10) / 60)  # noqa: E731
    bare = frame(disk_free=free, mem_used=0, mem_limit=1)
    finding = only(look(film(lambda t: {**bare(t), "queues": (queue("unrouted", message_bytes=held),)}, until=45)))
    said = text(finding)

    assert finding.facts["largest_queue"] is None
    assert "It is not the messages" in said.cause
    assert not any("purge" in (step.command or "") for step in said.steps)


def test_a_slow_fall_is_reported_after_half_an_hour():
    """10 h to the limit: a minute of it proves nothing."""
    assert [] == found(look(falling(60 * GB, GB // 10, until=600)))
    assert [(RULE, "warning", NODE)] == found(look(falling(60 * GB, GB // 10, until=2400, every=10.0)))


def test_a_fall_that_takes_days_is_not_reported():
    """At that rate the limit is three days away."""
    assert [] == found(look(falling(400 * GB, GB // 10, until=2400, every=10.0)))


@pytest.mark.parametrize("until", [60, 400, 2400])
def test_one_large_file_is_no_trend(until):
    """It falls once and stays."""
    once = film(frame(disk_free=lambda t: (30 if t < until / 2 else 9) * GB, mem_used=0, mem_limit=1), until=until)

    assert [] == found(look(once))


def test_a_disk_that_is_written_and_freed_is_no_trend():
    """Down and up again, every four minutes."""
    saw = film(
        frame(disk_free=lambda t: int(20 * GB - (t % 240) / 240 * 2 * GB), mem_used=0, mem_limit=1),
        until=2400,
        every=10.0,
    )

    assert "warning" not in [severity for _, severity, _ in found(look(saw))]


@pytest.mark.parametrize("fields", [{"disk_free_limit": None}, {"running": False}])
def test_absent_values_prove_nothing(fields):
    """Absent is not zero."""
    result = look(falling(10 * GB, GB, until=330, **fields))

    assert RULE not in [finding.rule for finding in result.findings]
