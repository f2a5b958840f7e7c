import json
import re

import pytest

from ackscope.__main__ import main
from diagnosis.pages import pages
from exporter.commands.runbook import wrapped


def test_a_runbook_is_printed_without_a_checkout(capsys):
    """The page of a rule, without the front matter that is for the renderer."""
    assert 0 == main(["runbook", "no-consumer"])

    text = capsys.readouterr().out
    assert text.startswith("# no-consumer\n\n## What it means\n")
    assert text.strip() == pages()["no-consumer"].body.strip()


def test_without_a_name_every_rule_is_listed_with_the_worst_impact_first(capsys):
    """One line a rule."""
    assert 0 == main(["runbook"])

    lines = capsys.readouterr().out.splitlines()
    assert set(pages()) == {line.split()[0] for line in lines}
    impacts = [line.split()[1] for line in lines]
    assert ["loss", "outage", "slowdown", "risk"] == list(dict.fromkeys(impacts))


def test_the_list_and_a_runbook_are_json_too(capsys):
    """For scripts."""
    main(["runbook", "--json"])
    assert {"rule", "impact", "title"} == set(json.loads(capsys.readouterr().out)[0])
    main(["runbook", "stuck-consumer", "--json"])
    assert "## What it means" in json.loads(capsys.readouterr().out)["runbook"]


@pytest.mark.parametrize(("given", "said"), [("no-consumr", "did you mean 'no-consumer'?"), ("x", "all are listed")])
def test_an_unknown_rule_gets_one_line(capsys, given, said):
    """With the nearest name, if one is near."""
    assert 0 != main(["runbook", given])

    text = capsys.readouterr().err
    assert text.startswith(f"ackscope runbook: unknown rule {given!r}")
    assert said in text
    assert 1 == len(text.splitlines())


@pytest.mark.parametrize("width", [60, 80])
def test_every_runbook_fits_a_terminal(width):
    """All words stay; only commands, tables and what has no space is wider."""
    for name, page in pages().items():
        text = wrapped(page.body, width)

        assert page.body.split() == text.split(), name
        for line in text.splitlines():
            if len(line) > width and not line.startswith(("    ", "|", "#")):
                words = re.sub(r"`[^`]+`", "command", line).removeprefix("- ").split()

                assert 1 == len(words), line


def test_commands_lists_and_paragraphs_stay_what_they_are():
    """Also an item in an item, and a command within a sentence."""
    text = """# a

One two three four five six seven eight nine ten. Run
`rabbitmqctl list_queues name` twice.

    rabbitmqctl list_queues -p V name memory messages message_bytes
    - a line of a command that looks like an item of a list

1. One two three four five six seven eight nine
   ten:
   - eleven twelve thirteen
     fourteen
2. `a b`
"""

    assert (
        wrapped(text, 40)
        == """# a

One two three four five six seven eight
nine ten. Run
`rabbitmqctl list_queues name` twice.

    rabbitmqctl list_queues -p V name memory messages message_bytes
    - a line of a command that looks like an item of a list

1. One two three four five six seven
   eight nine ten:
   - eleven twelve thirteen fourteen
2. `a b`"""
    )


def test_a_terminal_gets_it_wrapped(capsys, monkeypatch):
    """To its width; a pipe gets the Markdown as it is."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "70")
    assert 0 == main(["runbook", "no-consumer"])

    text = capsys.readouterr().out
    assert text == wrapped(pages()["no-consumer"].body.strip(), 70) + "\n"
    assert text != pages()["no-consumer"].body.strip() + "\n"
