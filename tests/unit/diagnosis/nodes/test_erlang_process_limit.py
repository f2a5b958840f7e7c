import pytest

from diagnosis.thresholds import Thresholds
from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import NODE, channel, connection, film, found, look, only


@pytest.mark.parametrize(("used", "severity"), [(600_000, None), (800_000, "warning"), (1_000_000, "critical")])
def test_it_warns_at_seven_tenths_and_is_critical_at_nine(used, severity):
    """At the limit the node stops."""
    expected = [("erlang-process-limit", severity, NODE)] if severity else []

    assert expected == found(look(film(frame(proc_used=used), until=30)))


def test_a_burst_is_not_reported():
    """Two readings above the limit are too few."""
    assert [] == found(look(film(frame(proc_used=lambda t: 900_000 if t > 20 else 500), until=30)))


def test_a_single_diagnosis_reports_it():
    """Two readings six seconds apart."""
    window = film(frame(proc_used=800_000), until=6, every=6)

    assert [("erlang-process-limit", "warning", NODE)] == found(look(window, thresholds=Thresholds.as_if_lasting()))


def test_processes_that_clients_do_not_account_for_are_named_as_such():
    """Something inside the node starts them."""
    finding = only(look(film(frame(proc_used=800_000), until=30)))

    assert finding.facts["explained_by_clients"] is False


def test_the_objects_of_the_node_are_counted():
    """Connections, channels and queues."""
    parts = {
        "connections": (connection(node=NODE),),
        "channels": tuple(channel(f"c ({number})", node=NODE, consumer_count=0) for number in range(3)),
    }
    finding = only(look(film(lambda t: {**frame(proc_used=6000, proc_total=8192)(t), **parts}, until=30)))

    assert (1, 3, 0) == tuple(finding.facts[key] for key in ("connections", "channels", "queues"))


@pytest.mark.parametrize("fields", [{"proc_used": None}, {"proc_total": None}, {"running": False}])
def test_absent_values_prove_nothing(fields):
    """A node that is down uses nothing."""
    window = film(frame(**{"proc_used": 900_000, "proc_total": 1_000_000, **fields}), until=30)

    assert "erlang-process-limit" not in [finding.rule for finding in look(window).findings]
