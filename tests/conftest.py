"""What every test stands on."""

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import spark_java

# A loaded machine is slow at times, which says nothing about the code.
hypothesis.settings.register_profile("no-deadline", deadline=None)
hypothesis.settings.load_profile("no-deadline")

SECOND_TRIES = 3
"""More of them than this in one run, and the run has failed whatever they brought."""

for name, value in spark_java.environment().items():
    os.environ.setdefault(name, value)

_PURE = Path(__file__).parent / "unit"

# A shell that starts something in the background has it ignore Ctrl-C, and so everything that it starts in turn.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def restored_signals() -> Iterator[None]:
    """What this process does at a signal is after the test what it was before."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    before, wakeup = {number: signal.getsignal(number) for number in numbers}, signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(wakeup)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """A command that a test calls writes its log to the stderr of that test, which later ones do not have."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    for handler in set(root.handlers) - set(before):
        root.removeHandler(handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """For a run of everything, which takes most of an hour."""
    parser.addoption(
        "--second-try", action="store_true", help="a test with real parts may fail once; reported at the end"
    )


class _AtOnce:
    """Prints the name of a test when it fails: a run of everything takes most of an hour."""

    def __init__(self, reporter: pytest.TerminalReporter) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome in {"failed", "rerun"}:
            crash = getattr(report.longrepr, "reprcrash", None)
            self._reporter.ensure_newline()
            self._reporter.write_line(f"{report.outcome}: {report.nodeid}: {crash and crash.message.splitlines()[0]}")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """The process that prints also prints failures at once."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_AtOnce(reporter))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A second try for real parts; and of several workers none is left alone with a slow file at the end."""
    if config.getoption("second_try"):
        for item in items:
            if not item.path.is_relative_to(_PURE):
                item.add_marker(pytest.mark.flaky(reruns=1))
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Many second tries are no accident."""
    if len(_first_tries(session.config)) > SECOND_TRIES and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """A test that failed once is a fault somewhere, to be looked at."""
    found = _first_tries(config)
    for report in found:
        terminalreporter.write_sep("_", f"failed once: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
    if len(found) > SECOND_TRIES:
        terminalreporter.write_line(f"{len(found)} second tries; more than {SECOND_TRIES} are a failure", red=True)


def _first_tries(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("rerun", []) if reporter else []
