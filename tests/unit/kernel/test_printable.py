"""Names chosen by clients, on a terminal and in a log."""

import json
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ackscope.__main__ import main
from ackscope.log import get_logger, setup_logging
from ackscope.printable import PrintableStream, printable

NAME = "a\x1b[31mred\x07\x9b\u202egnp\r\x00"
SHOWN = "a\\u001b[31mred\\u0007\\u009b\\u202egnp\\u000d\\u0000".replace("\\u000d", "\\r")


@given(st.text())
def test_nothing_hidden_is_left(text: str) -> None:
    """Tab and newline are layout, and stay."""
    shown = printable(text)

    assert {"\t", "\n"} >= {it for it in shown if unicodedata.category(it) in {"Cc", "Cf", "Zl", "Zp"}}
    assert text.count("\n") == shown.count("\n")


@pytest.mark.parametrize("text", ["orders.due", "Zürich, 東京 🐇", "two\nlines\tand a tab"])
def test_ordinary_text_stays(text: str) -> None:
    """Of every script."""
    assert text == printable(text)


@given(st.text())
def test_json_stays_the_same_document(text: str) -> None:
    """Escapes are those of JSON."""
    document = json.dumps({"name": text}, ensure_ascii=False)

    assert {"name": text} == json.loads(printable(document))


def test_a_log_line_is_one_line_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a key contains."""
    before = logging.getLogger().handlers[:]
    try:
        setup_logging()
        get_logger("ackscope").warning("unreachable", queue=NAME, file="b\nlevel=error")
    finally:
        logging.getLogger().handlers[:] = before
    line = capsys.readouterr().err

    assert SHOWN in line
    assert 1 == line.count("\n")
    assert line[:-1].isprintable()


def test_an_error_of_a_command_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a file may have them."""
    code = main(["diagnose", "--bundle", f"/nowhere/{NAME[:5]}"])

    assert (3, True) == (code, capsys.readouterr().err[:-1].isprintable())


def test_the_output_of_commands_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever they print; the rest of the stream is as before."""
    stream = PrintableStream(sys.stdout)

    print(NAME, file=stream)  # type: ignore[call-overload]

    assert f"{SHOWN}\n" == capsys.readouterr().out
    assert stream.isatty() == sys.stdout.isatty()
