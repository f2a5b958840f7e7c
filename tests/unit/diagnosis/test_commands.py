import json
import re
import shlex
import subprocess
from dataclasses import replace

import pytest

from diagnosis.pages import StepTemplate, pages
from tests.integration.diagnosis.commands import IN_FORCE, TOOLS, Names, catalogue_commands, filled, meant_for

COMMANDS = list(catalogue_commands())
HIDDEN = "caf\u00e9's \\n\u200b7 \u202e\u00a0$HOME\x1b[31m\n"
VERSIONS = [None, (3, 10), (4, 0), (4, 3)]

every_command = pytest.mark.parametrize("command", COMMANDS, ids=[each.place for each in COMMANDS])


def texts():
    """The text of every step of every page."""
    for rule, page in pages().items():
        for number, step in enumerate(page.steps, 1):
            yield pytest.param(step.text if isinstance(step, StepTemplate) else step, id=f"{rule}:{number}")


every_text = pytest.mark.parametrize("text", list(texts()))


@every_command
def test_a_command_has_balanced_quotes_whatever_the_names_are(command):
    """With an open quote, a shell would wait for more input."""
    for version in VERSIONS:
        assert shlex.split(filled(command, replace(Names(), version=version)), comments=True)


@every_command
def test_a_command_shows_every_character(command):
    """Applications choose names: what is not shown would be lost where the command is copied, or move the cursor."""
    chosen = {"vhost", "user", "classic", "unused", "exclusive", "quorum", "stream", "exchange", "connection"}
    command_line = filled(command, Names(**dict.fromkeys(chosen, HIDDEN)))

    assert command_line.isprintable()


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_a_name_with_characters_that_are_not_shown_is_copied_as_it_is(locale):
    """In any locale of the shell, beside quotes, backslashes, digits, and letters beyond ASCII."""
    delete = next(each for each in COMMANDS if each.rule == "orphan-queue" and "delete_queue" in each.step.command)
    command = filled(delete, Names(unused=HIDDEN)).replace("rabbitmqctl", "printf '%s|'", 1)
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env={"LC_ALL": locale})

    assert HIDDEN in done.stdout.decode().split("|")


@every_command
def test_a_policy_for_one_queue_keeps_what_is_in_force(command):
    """One policy applies to a queue: a command without its other keys would take a dead-letter exchange away."""
    words = shlex.split(filled(command, Names()), comments=True)
    for start in [place for place, word in enumerate(words) if word in {"set_policy", "set_operator_policy"}]:
        pattern, definition, *rest = words[start + 4 : start + 10]
        if pattern.startswith("^") and pattern.endswith("$") and rest[:2] == ["--apply-to", "queues"]:
            assert IN_FORCE.items() <= json.loads(definition).items()
            assert ["--priority", "100"] == rest[2:]


@every_command
def test_what_follows_a_command_is_a_comment(command):
    """A step is copied as a whole, and a remark in parentheses would be a shell error."""
    words = shlex.split(filled(command, Names()), comments=True)
    subshells = [word for word in words if word.startswith("(")]

    assert [] == subshells


@every_command
def test_a_command_has_no_line_break(command):
    """A line break ends it."""
    assert "\n" not in filled(command, Names())


@every_command
def test_a_command_that_is_not_tested_says_why(command):
    """The reason is a sentence."""
    reason = command.step.untested

    assert reason is None or re.fullmatch(r"[A-Z].+\.", reason)


@every_command
def test_a_command_is_shown_for_some_version(command):
    """A condition that no version meets would always hide the command."""
    assert any(meant_for(command.step.when, version) for version in VERSIONS)


@every_text
def test_the_text_of_a_step_begins_with_a_capital_letter(text):
    """It is a sentence."""
    assert re.match(r"[A-Z]|\{\{|\{%", text), text


@every_text
def test_the_text_of_a_step_has_no_command_in_it(text):
    """A command has a field of its own, from which it is copied."""
    programs = "|".join((*TOOLS, "curl", "systemctl", "ackscope probe"))

    assert not re.search(rf"\b({programs}) ", text), text
