import pytest

from tests.unit.diagnosis.nodes.machines import GB, frame, node
from tests.unit.diagnosis.pictures import film, found, look, only, told


def test_a_default_limit_on_a_short_disk_is_told_once_for_all_nodes():
    """One finding about the cluster, which lists the nodes."""
    nodes = tuple(node(name, disk_free=5 * GB) for name in ("a", "b"))
    finding = only(look(film(lambda _: {"nodes": nodes}, until=5)))

    assert ("disk-limit-unsafe", "info", "shop") == (finding.rule, finding.severity.value, finding.subject.name)
    assert "2 nodes have" in finding.summary
    assert "a: limit 48 MiB, 4.7 GiB free" in told(finding)
    assert "9.3 GiB and more should be free" in told(finding)


def test_a_roomy_disk_is_left_alone():
    """The default is everywhere, and no reason to speak while there is room."""
    assert [] == found(look(film(frame(disk_free=15 * GB), until=5)))


def test_a_limit_that_somebody_chose_is_left_alone():
    """Two gigabytes are somebody's decision."""
    assert [] == found(look(film(frame(disk_free=5 * GB, disk_free_limit=2 * GB), until=5)))


@pytest.mark.parametrize("fields", [{"disk_free": None}, {"disk_free_limit": None}, {"mem_limit": None}])
def test_absent_figures_tell_nothing(fields):
    """Absent is not zero."""
    assert [] == found(look(film(frame(**{"disk_free": GB, **fields}), until=5)))
