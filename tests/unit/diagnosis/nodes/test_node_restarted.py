from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only

RULE = "node-restarted"


def started(*moments):
    """A node that was started an hour before the film, and again at these seconds."""
    return frame(uptime_seconds=lambda t: t - max((each for each in moments if each <= t), default=-3600.0))


def test_a_fall_of_the_uptime_is_a_restart():
    """Information, since the first reading after it."""
    finding = only(look(film(started(62), until=80)))

    assert (RULE, "info", NODE) == (finding.rule, finding.severity.value, finding.subject.name)
    assert "2027-01-15T08:01:05Z" == finding.since
    assert (18.0, 1) == (finding.facts["uptime_seconds"], finding.facts["restarts"])


def test_a_young_node_was_not_restarted():
    """It was started before it was watched."""
    assert [] == found(look(film(frame(uptime_seconds=lambda t: 5.0 + t), until=60)))


def test_it_is_reported_for_a_quarter_of_an_hour():
    """After that it no longer explains anything."""
    assert [(RULE, "info", NODE)] == found(look(film(started(100), until=900, every=10.0)))
    assert [] == found(look(film(started(100), until=1200, every=10.0)))


def test_three_restarts_are_a_loop():
    """Repeated restarts are a warning."""
    finding = only(look(film(started(100, 300, 500), until=600)))

    assert (RULE, "warning") == (finding.rule, finding.severity.value)
    assert 3 == finding.facts["restarts"]


def test_a_node_that_is_down_is_another_cause():
    """A node without an uptime proves nothing."""
    down = film(frame(uptime_seconds=lambda t: 10.0 if t > 30 else 3600.0, running=lambda t: t < 60), until=80)

    assert RULE not in [finding.rule for finding in look(down).findings]
    assert [] == found(look(film(frame(uptime_seconds=None), until=60)))
