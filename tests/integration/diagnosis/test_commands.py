import re
from dataclasses import replace

import pytest

from lab.cluster import start_lab
from lab.node import Extra
from tests.integration.diagnosis.commands import Names, Objects, Shell, catalogue_commands, filled, meant_for

pytestmark = [pytest.mark.integration, pytest.mark.slow]

DESTROYS = re.compile(r"purge|delete|DELETE|close_|restart_|/get$")
"""After these commands the objects are made again. What a command adds stays for the next step of its page."""

DISK_LIMIT = "set_disk_free_limit"
"""On a host with less free disk, this command raises an alarm that stops publishing."""


OFTEN = Extra(
    config="".join(
        f"management.sample_retention_policies.{policy}.{span} = 1\n"
        for policy in ("global", "basic", "detailed")
        for span in ("minute", "hour")
    )
)
"""Samples of each second. The management API lists a new connection with its first sample: after 5 s by default."""

OLDEST, BETWEEN, NEWEST = "3.10", "4.0", "4.3"


def is_on_both_sides(command, version):
    """Whether the same command is shown for the oldest and the newest version, and `version` is between them."""
    sides = [tuple(map(int, side.split("."))) for side in (OLDEST, NEWEST)]
    texts = {filled(command, Names(version=each)) for each in (*sides, version)}
    return version not in sides and len(texts) == 1 and all(meant_for(command.step.when, side) for side in sides)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", [OLDEST, BETWEEN, NEWEST])
def test_every_command_of_the_catalogue_runs(version, tmp_path):
    """Filled with the names of real objects, each ends with exit code 0, on each version for which it is shown.

    What runs on the oldest and on the newest version is not run on the one between them.
    """
    done, failures = set(), []
    with start_lab(version, extra=OFTEN) as lab, Objects(lab) as objects:
        shell = Shell(lab.control(), tmp_path, objects.credentials)
        for command in catalogue_commands():
            if command.step.untested or not meant_for(command.step.when, objects.names.version):
                continue
            if is_on_both_sides(command, objects.names.version):
                continue
            same = filled(command, replace(Names(), version=objects.names.version))
            if same in done:
                continue
            done.add(same)
            text = filled(command, objects.names)
            ended = shell.run(text)
            if ended.returncode != 0:
                last = [line for part in (ended.stdout, ended.stderr) for line in part.strip().splitlines()[-1:]]
                failures.append(f"{command.place}: {text}\n    exit code {ended.returncode}: {'; '.join(last)}")
            if DISK_LIMIT in text:
                lab.ctl(0, DISK_LIMIT, "10MB")
            if DESTROYS.search(text):
                objects.make()
            else:
                objects.serve()

    assert done
    assert [] == failures, "\n".join(failures)
