from http import HTTPStatus

import pytest

from diagnosis.rules import RULES
from exporter.api.runbooks import alert_runbooks, runbook_page, runbooks
from exporter.docs.runbooks import text
from exporter.web.http import Request

PAGES = runbooks()


def requested(**query):
    """The answer to a query."""
    return runbook_page(PAGES, alert_runbooks(), Request(query=query))


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


def test_an_alert_has_its_own_paragraph():
    """From its heading to the next one, also where a section ends."""
    first, last = (requested(alert=name).body.decode() for name in ("AckscopeDown", "AckscopeDiagnosisBroken"))

    assert first.startswith("### AckscopeDown\n\nPrometheus cannot reach")
    assert "AckscopePollStale" not in first
    assert "AckscopeQueueHeadAge" not in last


def test_what_is_no_alert_has_no_page():
    """Rules and alerts are different names."""
    answer = requested(alert="AckscopeDow")

    assert HTTPStatus.NOT_FOUND == answer.status
    assert b"did you mean 'AckscopeDown'" in answer.body
    assert HTTPStatus.NOT_FOUND == requested(alert="stuck-consumer").status


@pytest.mark.parametrize("name", ["../../etc/passwd", "README", "<script>", "stuck-consumers"])
def test_what_is_no_rule_has_no_page(name):
    """No path leads out of the table; a typing error is helped."""
    answer = requested(rule=name)

    assert HTTPStatus.NOT_FOUND == answer.status
    assert b"<" not in answer.body
    assert (name == "stuck-consumers") == (b"did you mean 'stuck-consumer'" in answer.body)
