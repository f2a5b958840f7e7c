import pytest

from ackscope.findings import flat
from ackscope.topology import NodeMemory
from tests.unit.diagnosis.nodes.machines import GB, frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only


def using(used, **parts):
    """A node that uses so much of its 10 GB, of which these parts are known."""
    memory = NodeMemory(node=NODE, parts=parts, rss=used, strategy="rss")
    return film(lambda t: {**frame(mem_used=used)(t), "memory": (memory,)}, until=30)


def test_it_is_reported_near_the_limit():
    """Half of the memory is unused at 60 % of the limit."""
    finding = only(look(using(6 * GB, allocated_unused=1 * GB, reserved_unallocated=2 * GB, queue_procs=3 * GB)))

    assert ("memory-fragmentation", "info") == (finding.rule, finding.severity.value)
    assert (0.5, 0.6, 3 * GB) == tuple(finding.facts[key] for key in ("unused_share", "used_share", "in_use_bytes"))


def test_an_idle_node_is_not_reported():
    """Two thirds are unused, far from the limit, as on every fresh node."""
    assert [] == found(look(using(1 * GB, reserved_unallocated=700_000_000)))


def test_a_small_node_is_not_reported():
    """Near its limit most of it is code and tables, whatever it does."""
    memory = NodeMemory(node=NODE, parts={"reserved_unallocated": 100_000_000}, rss=140_000_000, strategy="rss")
    small = frame(mem_used=140_000_000, mem_limit=200_000_000)

    assert [] == found(look(film(lambda t: {**small(t), "memory": (memory,)}, until=30)))


def test_memory_in_use_is_another_cause():
    """The node is near its limit, and uses what it has."""
    assert [] == found(look(using(7 * GB, allocated_unused=1 * GB, queue_procs=6 * GB)))


def test_it_explains_a_node_near_its_limit():
    """There is one cause, and the other finding is its consequence."""
    result = look(using(9 * GB, reserved_unallocated=5 * GB))

    assert [("memory-fragmentation", "info", NODE)] == found(result)
    assert ["memory-fragmentation", "memory-near-limit"] == [each.rule for each in flat(result.findings)]


@pytest.mark.parametrize("parts", [{}, {"queue_procs": 6 * GB}], ids=["none", "others"])
def test_absent_parts_prove_nothing(parts):
    """Absent is neither zero nor everything."""
    assert [] == found(look(using(6 * GB, **parts)))
