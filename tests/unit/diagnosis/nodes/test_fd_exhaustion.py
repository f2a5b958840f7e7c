import pytest

from ackscope.snapshot import Alarm, HealthCheck
from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import NODE, connection, film, found, look, only


@pytest.mark.parametrize(("used", "severity"), [(6900, None), (7200, "warning"), (9000, "critical")])
def test_it_warns_at_seven_tenths_and_is_critical_at_85_percent(used, severity):
    """A 4.x node stops with its last descriptor and raises no alarm before."""
    expected = [("fd-exhaustion", severity, NODE)] if severity else []

    assert expected == found(look(film(frame(fd_used=used), until=30)))


def test_a_burst_is_not_reported():
    """One reading above, the next below."""
    assert [] == found(look(film(frame(fd_used=lambda t: 9000 if t == 30 else 100), until=30)))
    assert [] == found(look(film(frame(fd_used=lambda t: 9000 if 20 <= t <= 25 else 100), until=30)))


def test_a_single_diagnosis_reports_it():
    """Two readings six seconds apart."""
    window = film(frame(fd_used=8000), until=6, every=6)

    assert [("fd-exhaustion", "warning", NODE)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_3x_is_critical_when_its_sockets_are_used_up():
    """There are plenty of descriptors, and new clients get no answer."""
    film_ = film(frame("3.10.8", fd_used=200, fd_total=300, sockets_used=178, sockets_total=180), until=5)
    finding = only(look(film_))

    assert "critical" == finding.severity.value
    assert (178, 180, True, True) == tuple(
        finding.facts[key] for key in ("sockets_used", "sockets_limit", "sockets_full", "reserves_descriptors")
    )


def test_the_alarm_of_3x_counts_at_once():
    """The values of the node are behind."""
    alarm = HealthCheck(
        name="alarms", ok=False, alarms=(Alarm(node=NODE, resource="file_descriptor_limit"),), reason="alarms"
    )
    result = look(film(lambda t: {**frame("3.10.8")(t), "health": (alarm,)}, until=0))

    assert [("fd-exhaustion", "critical", NODE)] == found(result)


def test_the_clients_with_most_connections_are_named():
    """By the name that the application gives its connections, and its host."""
    many = tuple(connection(f"c{number}", node=NODE, client_name="leaky", peer_host="10.0.0.9") for number in range(5))
    one = (connection("d", node=NODE, client_name="good"),)
    finding = only(look(film(lambda t: {**frame(fd_used=8000)(t), "connections": many + one}, until=30)))

    assert {"client": "leaky", "user": None, "host": "10.0.0.9", "connections": 5} == finding.facts["holders"][0]
    assert ("leaky", "good") == finding.involved.clients


def test_connections_that_all_have_another_name_are_counted_by_user():
    """Such a client makes up a name for each connection."""
    many = tuple(
        connection(f"c{number}", node=NODE, client_name=f"job-{number}", user="batch", peer_host="10.0.0.9")
        for number in range(5)
    )
    finding = only(look(film(lambda t: {**frame(fd_used=8000)(t), "connections": many}, until=30)))

    assert [{"client": None, "user": "batch", "host": "10.0.0.9", "connections": 5}] == finding.facts["holders"]


@pytest.mark.parametrize(
    "fields", [{"fd_used": None}, {"fd_total": None}, {"fd_total": 0}, {"running": False, "fd_used": 9999}]
)
def test_absent_values_prove_nothing(fields):
    """Absent is not zero, a limit of zero is no limit, and a node that is down uses nothing."""
    result = look(film(frame(**fields), until=30))

    assert "fd-exhaustion" not in [finding.rule for finding in result.findings]
