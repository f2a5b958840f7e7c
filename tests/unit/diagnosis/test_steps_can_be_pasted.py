import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "diagnosis/rules"
TOOLS = (
    "rabbitmqctl ",
    "rabbitmq-queues ",
    "rabbitmq-diagnostics ",
    "rabbitmq-upgrade ",
    "rabbitmq-streams ",
    "curl -",
)


def texts():
    """Every text of every rule that holds a command, without what is filled in; docstrings are prose."""
    for path in sorted(ROOT.rglob("*.py")):
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                text = node.value
            else:
                continue
            if any(f": {tool}" in text for tool in TOOLS):
                yield pytest.param(text, id=f"{path.stem}:{node.lineno}:{node.col_offset}:{type(node).__name__}")


@pytest.mark.parametrize("text", list(texts()))
def test_what_follows_a_command_is_a_comment(text):
    """A step is copied whole, from the command to its end: a remark in parentheses would be an error of the shell."""
    start = min(text.index(f": {tool}") for tool in TOOLS if f": {tool}" in text)
    command = text[start:].split("#")[0]

    assert " (" not in command, command
