"""The front door and what all commands share."""

import subprocess
import sys

import pytest

from ackscope.__main__ import COMMANDS, main
from ackscope.cli import nearest, seconds
from ackscope.log import redact


def test_every_command_of_the_table_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Which also proves that its module exists and loads."""
    for name in COMMANDS:
        with pytest.raises(SystemExit) as caught:
            main([name, "--help"])

        assert 0 == caught.value.code
        assert f"usage: ackscope {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["diagnos"], "ackscope: unknown command 'diagnos', did you mean 'diagnose'?; see: ackscope --help\n"),
        (["probe", "--nope"], "ackscope probe: the following arguments are required"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_three(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A typing error is never read as a verdict (0, 1, 2)."""
    with pytest.raises(SystemExit) as caught:
        main(words)
    shown = capsys.readouterr().err

    assert (3, 1) == (caught.value.code, shown.count("\n"))
    assert shown.startswith(line)


def test_the_front_door_loads_no_room() -> None:
    """Help and version are fast, and the base install needs no extra for them."""
    rooms = "exporter pipeline dashboard lab probes diagnosis pika pyspark streamlit"
    code = f"import sys, ackscope.__main__; print([name for name in {rooms.split()} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]\n" == shown.stdout


@pytest.mark.parametrize(("text", "value"), [("200ms", 0.2), ("30s", 30), ("5m", 300), ("2h", 7200), ("7", 7)])
def test_durations(text: str, value: float) -> None:
    """Durations are accepted as people write them."""
    assert value == pytest.approx(seconds(text))


@pytest.mark.parametrize("text", ["", "s", "-1s", "nan", "inf", "5 minutes"])
def test_what_is_not_a_duration(text: str) -> None:
    """The message shows the forms that are understood."""
    with pytest.raises(ValueError, match="write 30s, 5m, 1h or 200ms"):
        seconds(text)


def test_logs_never_hold_a_password() -> None:
    """In any address, anywhere in the line."""
    assert "cannot reach amqp://u:***@h and http://v:***@g" == redact("cannot reach amqp://u:x@h and http://v:y@g")


def test_the_example_in_a_message_stays_readable() -> None:
    """The example contains no secret."""
    example = "expected amqp or amqps, as in amqp://user:password@host:5672"

    assert example == redact(example)


def test_nothing_near_gives_no_hint() -> None:
    """Better no hint than a silly one."""
    assert ("", ", did you mean 'queue'?") == (nearest("zzz", ["queue"]), nearest("queu", ["queue"]))
