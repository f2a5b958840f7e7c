import pytest

from ackscope.findings import flat
from ackscope.topology import NodeMemory
from tests.unit.diagnosis.nodes.machines import GB, frame
from tests.unit.diagnosis.pictures import NODE, film, found, look, only


def kept(used, **parts):
    """A node that uses so much of its 10 GB, of which these parts are known."""
    memory = NodeMemory(node=NODE, parts=parts, rss=used, strategy="rss")
    return film(lambda t: {**frame(mem_used=used)(t), "memory": (memory,)}, until=30)


def test_it_is_told_where_the_limit_is_near():
    """Half of the memory is unused at 60 % of the limit."""
    finding = only(look(kept(6 * GB, allocated_unused=1 * GB, reserved_unallocated=2 * GB, queue_procs=3 * GB)))

    assert ("memory-fragmentation", "info") == (finding.rule, finding.severity.value)
    assert "50% of the memory" in finding.summary
    assert "2.8 GiB in use" in finding.summary


def test_an_idle_node_is_left_alone():
    """Two thirds unused, far from the limit: as every fresh node is."""
    assert [] == found(look(kept(1 * GB, reserved_unallocated=700_000_000)))


def test_a_small_node_is_left_alone():
    """Near its limit most of it is code and tables, whatever it does."""
    memory = NodeMemory(node=NODE, parts={"reserved_unallocated": 100_000_000}, rss=140_000_000, strategy="rss")
    small = frame(mem_used=140_000_000, mem_limit=200_000_000)

    assert [] == found(look(film(lambda t: {**small(t), "memory": (memory,)}, until=30)))


def test_memory_in_use_is_another_cause():
    """The node is near its limit, and uses what it has."""
    assert [] == found(look(kept(7 * GB, allocated_unused=1 * GB, queue_procs=6 * GB)))


def test_it_accounts_for_a_limit_that_is_near():
    """One cause, and the other finding hangs under it."""
    verdict = look(kept(9 * GB, reserved_unallocated=5 * GB))

    assert [("memory-fragmentation", "info", NODE)] == found(verdict)
    assert ["memory-fragmentation", "memory-near-limit"] == [each.rule for each in flat(verdict.findings)]


@pytest.mark.parametrize("parts", [{}, {"queue_procs": 6 * GB}], ids=["none", "others"])
def test_parts_that_are_absent_tell_nothing(parts):
    """Absent is not zero, and not all of it either."""
    assert [] == found(look(kept(6 * GB, **parts)))
