import os

import pytest

from ackscope.errors import MissingPart
from lab.bootstrap import build

pytestmark = pytest.mark.integration


def test_a_failed_build_leaves_its_log_and_nothing_else(tmp_path, monkeypatch, capsys):
    """One line with debootstrap's own last words; the next try starts afresh."""
    programs = tmp_path / "bin"
    programs.mkdir()
    failing = programs / "debootstrap"
    failing.write_text('#!/bin/sh\nmkdir -p "$4/etc"\necho "I: Retrieving"\necho "E: No such suite: $3" >&2\nexit 1\n')
    failing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    root = tmp_path / "brokers" / "sid"

    with pytest.raises(MissingPart) as caught:
        build("4.3", "sid", root)

    log = tmp_path / "brokers/sid.log"
    assert f"cannot build the 4.3 broker: E: No such suite: sid; full log: {log}" == str(caught.value)
    assert "I: Retrieving" in log.read_text()
    assert {"sid.log", "sid.lock"} == {path.name for path in root.parent.iterdir()}
    assert "takes 40 s to 2 min" in capsys.readouterr().err
