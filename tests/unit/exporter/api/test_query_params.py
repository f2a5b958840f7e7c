import pytest

from ackscope.errors import UsageError
from exporter.api.query_params import parse_names

KNOWN = ("overview", "nodes", "queues")


@pytest.mark.parametrize(
    ("requested", "expected"),
    [(None, KNOWN), ("queues", ("queues",)), ("queues, overview", ("overview", "queues")), ("nodes,nodes", ("nodes",))],
)
def test_names_are_accepted_from_a_list(requested, expected):
    """They are in the order of the known names; without a list, all are returned."""
    assert expected == parse_names("families", requested, KNOWN)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ("queue", "families='queue' is not known, did you mean 'queues'?; known: overview, nodes, queues"),
        ("nodes,", "families= is missing; known: overview, nodes, queues"),
        ("", "families= is missing; known: overview, nodes, queues"),
        ("x" * 99, f"families='{'x' * 80}' is not known; known: overview, nodes, queues"),
    ],
)
def test_a_name_that_there_is_not_is_reported(requested, message):
    """The message lists the known names; a long name is shortened."""
    with pytest.raises(UsageError) as raised:
        parse_names("families", requested, KNOWN)

    assert message == str(raised.value)
