"""What the demo says while it starts, and its notes."""

import argparse
import re
from pathlib import Path

import pytest

from dashboard.data import notes
from lab.demo import command, services
from lab.demo.stack import CLUSTER, Stack


def test_a_note_of_the_demo_is_one_of_the_timeline(tmp_path: Path) -> None:
    """The dashboard reads what the demo writes."""
    stack = Stack(None, None, tmp_path, "", "", "")  # type: ignore[arg-type]  only its folder is used
    stack.note("demo started", 100.0)
    stack.note("injected stuck-consumer on queue 'orders'\\n", 130.5)
    found, problem = notes.read(stack.notes, CLUSTER, 0, 1000)

    assert None is problem
    assert [(100.0, "demo", "demo started"), (130.5, "demo", "injected stuck-consumer on queue 'orders'\\n")] == [
        (each.at, each.author, each.text) for each in found
    ]


def test_each_step_of_the_start_is_one_line(monkeypatch, capsys) -> None:
    """With the seconds so far, in 80 columns; a start that fails leaves what it said on the terminal."""

    class Ended(Exception):
        """The start ends here."""

    def start(*, step, **_):
        step("Spark: waiting for the first minutes of history, the longest step".ljust(68, "."))
        step("dashboard is up, you can open it: http://127.0.0.1:65535")
        raise Ended

    monkeypatch.setattr(command, "running_stack", start)
    monkeypatch.setattr(command.End, "listen", lambda _: None)
    with pytest.raises(Ended):
        command.run(command_args())
    lines = capsys.readouterr().err.splitlines()

    assert 3 == len(lines)
    assert all(len(line) <= 80 for line in lines)
    assert all(re.match(r" +\d+ s  \S", line) for line in lines[1:])


def command_args():
    """The arguments of a plain demo."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([])


def test_a_long_wait_prints_something_again_and_again(monkeypatch, tmp_path: Path) -> None:
    """Nobody takes a slow start for one that hangs."""
    monkeypatch.setattr(services, "_SIGN_OF_LIFE", 0.3)
    signs: list[int] = []
    started = services.Services(tmp_path)
    try:
        sleeper = started.start("sleeper", ["sleep", "60"])
        sleeper.wait_until(lambda: len(signs) >= 2, "two signs of life", 30, lambda: signs.append(1))
    finally:
        started.stop()

    assert 2 == len(signs)
