import pytest

from tests.unit.diagnosis.nodes.machines import GB, frame, node
from tests.unit.diagnosis.pictures import film, found, look, only


def test_a_default_limit_on_a_short_disk_is_one_finding_for_all_nodes():
    """One finding about the cluster, which lists the nodes."""
    nodes = tuple(node(name, disk_free=5 * GB) for name in ("a", "b"))
    finding = only(look(film(lambda _: {"nodes": nodes}, until=5)))

    assert ("disk-limit-unsafe", "info", "shop") == (finding.rule, finding.severity.value, finding.subject.name)
    assert [
        {"node": "a", "limit_bytes": 50_000_000, "free_bytes": 5 * GB},
        {"node": "b", "limit_bytes": 50_000_000, "free_bytes": 5 * GB},
    ] == finding.facts["nodes"]
    assert 10 * GB == finding.facts["needed_bytes"]


def test_a_disk_with_room_is_not_reported():
    """The default is common, and harmless while the disk has room."""
    assert [] == found(look(film(frame(disk_free=15 * GB), until=5)))


def test_a_configured_limit_is_not_reported():
    """Somebody decided on 2 GB."""
    assert [] == found(look(film(frame(disk_free=5 * GB, disk_free_limit=2 * GB), until=5)))


@pytest.mark.parametrize("fields", [{"disk_free": None}, {"disk_free_limit": None}, {"mem_limit": None}])
def test_absent_values_prove_nothing(fields):
    """Absent is not zero."""
    assert [] == found(look(film(frame(**{"disk_free": GB, **fields}), until=5)))
