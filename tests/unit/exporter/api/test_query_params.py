import pytest

from ackscope.errors import UsageError
from exporter.api.query_params import parse_names

KNOWN = ("overview", "nodes", "queues")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [(None, KNOWN), ("queues", ("queues",)), ("queues, overview", ("overview", "queues")), ("nodes,nodes", ("nodes",))],
)
def test_names_are_taken_from_a_list(asked, expected):
    """In the order of what there is; without a list, all."""
    assert expected == parse_names("families", asked, KNOWN)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("queue", "families='queue' is not known, did you mean 'queues'?; known: overview, nodes, queues"),
        ("nodes,", "families= is missing; known: overview, nodes, queues"),
        ("", "families= is missing; known: overview, nodes, queues"),
        ("x" * 99, f"families='{'x' * 80}' is not known; known: overview, nodes, queues"),
    ],
)
def test_a_name_that_there_is_not_is_told(asked, message):
    """With those that there are; a long one is not repeated whole."""
    with pytest.raises(UsageError) as raised:
        parse_names("families", asked, KNOWN)

    assert message == str(raised.value)
