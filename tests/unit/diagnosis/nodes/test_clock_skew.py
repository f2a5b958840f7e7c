from dataclasses import replace

import pytest

from tests.unit.diagnosis.nodes.machines import frame
from tests.unit.diagnosis.pictures import film, found, look, only, snapshot, text


def differing(offset):
    """A healthy node whose clock differs by so many seconds."""
    overview = replace(snapshot(0).overview.value, node="rabbit@one", clock_offset=offset)
    return look(film(lambda t: {**frame()(t), "overview": overview}, until=10))


@pytest.mark.parametrize("offset", [None, 0.0, 4.0, -4.0])
def test_a_small_or_unknown_difference_is_no_finding(offset):
    """Within what is tolerated."""
    assert [] == found(differing(offset))


@pytest.mark.parametrize(
    ("offset", "severity", "words"),
    [
        (40.0, "info", "is 40 s ahead of that of ackscope"),
        (-40.0, "info", "is 40 s behind that of ackscope"),
        (900.0, "warning", "is 15 min ahead of that of ackscope"),
        (-7200.0, "warning", "behind that of ackscope"),
    ],
)
def test_a_difference_is_reported_with_its_direction(offset, severity, words):
    """It is a warning from the difference on that logins do not tolerate."""
    finding = only(differing(offset))

    assert ("clock-skew", severity, ("rabbit@one",)) == (finding.rule, finding.severity.value, finding.involved.nodes)
    assert words in text(finding).summary
