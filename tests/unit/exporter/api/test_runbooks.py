from http import HTTPStatus

import pytest

from diagnosis.rules import RULES
from exporter.api.runbooks import runbook_page, runbooks
from exporter.docs.runbooks import text
from exporter.web.http import Request

PAGES = runbooks()


def requested(**query):
    """The answer to a query."""
    return runbook_page(PAGES, Request(query=query))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_its_page(rule):
    """The link of an alert leads to it."""
    answer = requested(rule=rule.name)

    assert HTTPStatus.OK == answer.status
    assert answer.body.startswith(f"# {rule.name}\n".encode())


def test_the_list_is_made_from_the_rules():
    """`python -m exporter.docs.runbooks` writes it."""
    assert text() == PAGES[""]


def test_without_a_rule_all_are_listed():
    """Each by its name."""
    listed = requested().body.decode()

    assert [] == [rule.name for rule in RULES if f"[{rule.name}]({rule.name}.md)" not in listed]


@pytest.mark.parametrize("name", ["../../etc/passwd", "README", "<script>", "stuck-consumers"])
def test_what_is_no_rule_has_no_page(name):
    """No path leads out of the table; a typing error is helped."""
    answer = requested(rule=name)

    assert HTTPStatus.NOT_FOUND == answer.status
    assert b"<" not in answer.body
    assert (name == "stuck-consumers") == (b"did you mean 'stuck-consumer'" in answer.body)
