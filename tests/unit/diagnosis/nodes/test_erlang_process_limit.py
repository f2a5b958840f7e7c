import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import NODE, channel, connection, film, found, look, only, told


@pytest.mark.parametrize(("used", "severity"), [(600_000, None), (800_000, "warning"), (1_000_000, "critical")])
def test_it_warns_at_seven_tenths_and_is_critical_at_nine(used, severity):
    """At the limit the node ends."""
    expected = [("erlang-process-limit", severity, NODE)] if severity else []

    assert expected == found(look(film(frame(proc_used=used), until=30)))


def test_a_burst_is_not_reported():
    """Two readings of high use are less than it must last."""
    assert [] == found(look(film(frame(proc_used=lambda t: 900_000 if t > 20 else 500), until=30)))


def test_one_look_tells_of_it():
    """Two readings six seconds apart."""
    window = film(frame(proc_used=800_000), until=6, every=6)

    assert [("erlang-process-limit", "warning", NODE)] == found(look(window, thresholds=Thresholds.one_shot()))


def test_processes_that_clients_do_not_account_for_are_said_to_be_so():
    """Something inside the node starts them."""
    finding = only(look(film(frame(proc_used=800_000), until=30)))

    assert "something inside the node" in finding.cause


def test_what_it_serves_is_counted():
    """Connections, channels and queues of this node."""
    parts = {
        "connections": (connection(node=NODE),),
        "channels": tuple(channel(f"c ({number})", node=NODE, consumer_count=0) for number in range(3)),
    }
    finding = only(look(film(lambda t: {**frame(proc_used=6000, proc_total=8192)(t), **parts}, until=30)))

    assert "1 connection, 3 channels, 0 queues" in told(finding)


@pytest.mark.parametrize("fields", [{"proc_used": None}, {"proc_total": None}, {"running": False}])
def test_absent_figures_tell_nothing(fields):
    """A node that is down uses nothing."""
    window = film(frame(**{"proc_used": 900_000, "proc_total": 1_000_000, **fields}), until=30)

    assert "erlang-process-limit" not in [finding.rule for finding in look(window).findings]
