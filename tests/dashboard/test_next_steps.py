import pytest

from dashboard.format.next_steps import split


@pytest.mark.parametrize(
    ("step", "prose", "command"),
    [
        pytest.param(
            "see who: rabbitmqctl list_consumers -p '/' | grep -F -- 'a: b'",
            "see who",
            "rabbitmqctl list_consumers -p '/' | grep -F -- 'a: b'",
            id="words, then a command",
        ),
        pytest.param("rabbitmqctl status", None, "rabbitmqctl status", id="a command alone"),
        pytest.param("restart the consumer", "restart the consumer", None, id="words alone"),
        pytest.param(
            "ask the owner of 'x: rabbitmqctl reset' first",
            "ask the owner of 'x: rabbitmqctl reset' first",
            None,
            id="a name that looks like a command",
        ),
        pytest.param(
            "close 'x': rabbitmqctl reset", "close 'x': rabbitmqctl reset", None, id="after a name nothing is sure"
        ),
        pytest.param("look: rabbitmqctl eval 'oops", "look: rabbitmqctl eval 'oops", None, id="a quote left open"),
    ],
)
def test_split(step: str, prose: str | None, command: str | None) -> None:
    """Only a certain command is offered for copying; no text of a step is lost."""
    assert (prose, command) == split(step)
