import json
import logging

import pytest

from ackscope.log import get_logger, setup_logging


@pytest.fixture
def as_it_was():
    """Restore the handlers and the level of the root logger."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def fail():
    """An exception with its traceback, logged."""
    try:
        int("no route")
    except ValueError:
        get_logger("exporter.x").exception("render failed", cluster="shop")


def test_logfmt_is_one_line_of_keys(as_it_was, capsys):
    """A line feed or a quote in a value does not break it, and a password does not show."""
    setup_logging()
    get_logger("exporter.x").warning("cluster unreachable", cluster="shop", error='no "route"\nto amqp://a:secret@h')
    line = capsys.readouterr().err

    assert 1 == line.count("\n")
    assert 'level=warning logger=exporter.x msg="cluster unreachable" cluster=shop' in line
    assert r'error="no \"route\"\nto amqp://a:***@h"' in line


def test_json_is_one_document_a_line(as_it_was, capsys):
    """With the keys of the event, the traceback as text."""
    setup_logging(style="json")
    fail()
    event = json.loads(capsys.readouterr().err)

    assert ("error", "exporter.x", "render failed", "shop") == tuple(
        event[key] for key in ("level", "logger", "msg", "cluster")
    )
    assert "ValueError: invalid literal for int()" in event["exception"]


def test_a_traceback_can_be_read_in_logfmt(as_it_was, capsys):
    """It follows its line."""
    setup_logging()
    fail()
    head, *traceback = capsys.readouterr().err.splitlines()

    assert head.endswith("cluster=shop")
    assert "Traceback (most recent call last):" == traceback[0]
    assert traceback[-1].startswith("ValueError: invalid literal")


def test_other_libraries_log_in_the_same_format(as_it_was, capsys):
    """They are logged from level warning up."""
    setup_logging()
    logging.getLogger("urllib3").info("fine")
    logging.getLogger("urllib3").warning("retry %d", 3)

    assert 'level=warning logger=urllib3 msg="retry 3"' in capsys.readouterr().err.splitlines()[0]


def test_a_level_is_that_of_our_rooms(as_it_was, capsys):
    """Level debug of our packages does not apply to other libraries."""
    setup_logging("debug")
    get_logger("probes.x").debug("sent")
    logging.getLogger("urllib3").debug("sent")

    assert 1 == capsys.readouterr().err.count("msg=sent")
