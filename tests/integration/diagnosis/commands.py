"""The commands of the catalogue, filled in for objects of a throwaway broker, and run by a real shell."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import meta

from diagnosis.pages import StepTemplate, pages
from diagnosis.text import _applies, _command, _environment

TOOLS = (
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-streams",
    "rabbitmq-upgrade",
)


@dataclass(frozen=True, slots=True)
class CatalogueCommand:
    """A command of a page.

    Attributes:
        place: its rule, and the number of its step.
        step: the template.
    """

    place: str
    step: StepTemplate


def catalogue_commands() -> Iterator[CatalogueCommand]:
    """Every command of every page."""
    for name, page in pages().items():
        for number, step in enumerate(page.steps, 1):
            if isinstance(step, StepTemplate) and step.command:
                yield CatalogueCommand(f"{name}:{number}", step)


def names_of(template: str) -> set[str]:
    """The facts that a template needs."""
    environment = _environment()
    return meta.find_undeclared_variables(environment.parse(template)) - set(environment.globals)


def filled(command: CatalogueCommand, facts: Mapping[str, Any]) -> str | None:
    """The command for these facts; None where it is not meant for this version of the broker."""
    condition = command.step.when
    if condition and "version" in names_of("{{ " + condition + " }}"):
        version = " ".join(each for each in re.split(r"\band\b", condition) if "version" in each).strip("() ")
        if not _applies(f"({version})" if version.count("(") == version.count(")") else condition, facts):
            return None
    return _command(command.step.command or "", facts)


class Shell:
    """A shell in which the command-line tools of RabbitMQ act on one node of a lab.

    Args:
        control: of the lab.
        folder: for the wrappers of the tools.
    """

    def __init__(self, control: Any, folder: Path) -> None:
        handle = control.handles[0]
        for tool in TOOLS:
            environ = " ".join(f"{key}={shlex.quote(value)}" for key, value in handle.environ.items())
            command = shlex.join(control.broker.command(control.folder, tool))
            wrapper = folder / tool
            wrapper.write_text(f'#!/bin/sh\nexec env -i {environ} {command} "$@"\n')
            wrapper.chmod(0o755)
        self._path = f"{folder}:{os.environ['PATH']}"

    def run(self, command: str, credentials: str = "guest:guest") -> subprocess.CompletedProcess[str]:
        """Run a command as a person would paste it, with credentials in place of `USER`."""
        text = command.replace("curl -u USER", f"curl --fail-with-body -sS -u {credentials}")
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            env={**os.environ, "PATH": self._path},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
