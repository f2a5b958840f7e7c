import pytest

from ackscope.snapshot import Alarm, HealthCheck
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import NODE, connection, film, found, look, only, told


@pytest.mark.parametrize(("used", "severity"), [(6900, None), (7200, "warning"), (9000, "critical")])
def test_it_warns_at_seven_tenths_and_is_critical_at_85_percent(used, severity):
    """A 4.x node ends with its last handle and raises no alarm before."""
    expected = [("fd-exhaustion", severity, NODE)] if severity else []

    assert expected == found(look(film(frame(fd_used=used), until=30)))


def test_a_burst_is_not_reported():
    """One reading above, the next below."""
    assert [] == found(look(film(frame(fd_used=lambda t: 9000 if t == 30 else 100), until=30)))
    assert [] == found(look(film(frame(fd_used=lambda t: 9000 if 20 <= t <= 25 else 100), until=30)))


def test_one_look_tells_of_it():
    """Two readings six seconds apart."""
    window = film(frame(fd_used=8000), until=6, every=6)

    assert [("fd-exhaustion", "warning", NODE)] == found(look(window, thresholds=Thresholds.one_shot()))


def test_3x_is_critical_when_its_sockets_are_gone():
    """Handles are plenty, and new clients get no answer."""
    film_ = film(frame("3.10.8", fd_used=200, fd_total=300, sockets_used=178, sockets_total=180), until=5)
    finding = only(look(film_))

    assert "critical" == finding.severity.value
    assert "178 of 180 sockets" in finding.summary
    assert "new clients connect and are not served" in finding.summary


def test_the_alarm_of_3x_is_believed_at_once():
    """Whatever the figures say, which lag."""
    alarm = HealthCheck(
        name="alarms", ok=False, alarms=(Alarm(node=NODE, resource="file_descriptor_limit"),), reason="alarms"
    )
    verdict = look(film(lambda t: {**frame("3.10.8")(t), "health": (alarm,)}, until=0))

    assert [("fd-exhaustion", "critical", NODE)] == found(verdict)


def test_who_holds_them_is_named():
    """By the name that the application gave itself, and where it runs."""
    many = tuple(connection(f"c{number}", node=NODE, client_name="leaky", peer_host="10.0.0.9") for number in range(5))
    one = (connection("d", node=NODE, client_name="good"),)
    finding = only(look(film(lambda t: {**frame(fd_used=8000)(t), "connections": many + one}, until=30)))

    assert "leaky at 10.0.0.9: 5 connections" in told(finding)
    assert "Most of its connections are of 'leaky at 10.0.0.9'" in finding.cause


def test_names_that_all_differ_are_told_by_user():
    """A client that makes up a name for each connection."""
    many = tuple(
        connection(f"c{number}", node=NODE, client_name=f"job-{number}", user="batch", peer_host="10.0.0.9")
        for number in range(5)
    )
    finding = only(look(film(lambda t: {**frame(fd_used=8000)(t), "connections": many}, until=30)))

    assert "user batch at 10.0.0.9: 5 connections" in told(finding)


@pytest.mark.parametrize(
    "fields", [{"fd_used": None}, {"fd_total": None}, {"fd_total": 0}, {"running": False, "fd_used": 9999}]
)
def test_absent_figures_tell_nothing(fields):
    """Absent is not zero, a total of zero is none, and a node that is down uses nothing."""
    verdict = look(film(frame(**fields), until=30))

    assert "fd-exhaustion" not in [finding.rule for finding in verdict.findings]
