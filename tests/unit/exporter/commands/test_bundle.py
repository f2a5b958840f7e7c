import stat

import pytest

from ackscope.__main__ import main
from ackscope.errors import DataError
from diagnosis.thresholds import Thresholds
from exporter.api.bundle import DiagnosisBundle, pack_bundle
from exporter.commands.bundle import write_whole
from tests.unit.diagnosis.pictures import film, stuck


@pytest.fixture
def saved(tmp_path):
    """A bundle of a cluster with a stuck consumer."""
    window = film(stuck, until=120)
    path = tmp_path / "shop.ackscope"
    write_whole(
        path, pack_bundle(DiagnosisBundle(window=window, outcomes=(), now=window.latest.taken, thresholds=Thresholds()))
    )
    return path


def test_a_bundle_is_judged_without_a_broker(saved, capsys):
    """The finding, its cause and its steps, and the exit code of the verdict."""
    code = main(["diagnose", "--bundle", str(saved)])
    reported = capsys.readouterr()

    assert (2, "") == (code, reported.err)
    assert "CRITICAL  queue 'orders' in vhost '/'  (stuck-consumer, since" in reported.out


def test_a_bundle_is_for_its_owner(saved):
    """It names hosts and users."""
    assert 0o600 == stat.S_IMODE(saved.stat().st_mode)
    assert [saved] == list(saved.parent.iterdir())


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    """One line, and the folder as it was."""
    with pytest.raises(DataError) as caught:
        write_whole(tmp_path / "missing" / "x", b"x")

    assert "No such file or directory" in str(caught.value)
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "described"),
    [
        (["diagnose", "--bundle", "{folder}/none"], "none: No such file or directory; give a file that"),
        (["diagnose", "--bundle", "{folder}/junk"], "junk: not an ackscope bundle; create one with"),
        (["diagnose", "--bundle", "{folder}/junk", "--watch"], "remove --amqp, --watch, --rollups and --cluster"),
        (["bundle", "--management", "http://h", "-o", "{folder}/junk"], "junk: already exists; choose another file"),
        (["bundle", "--management", "http://h", "-o", "{folder}/x", "--for", "1s"], "--for: must be 8s to 1h"),
        (["bundle", "--management", "ftp://h", "-o", "{folder}/x"], "scheme 'ftp', expected http or https"),
    ],
)
def test_a_mistake_is_reported_in_one_line(tmp_path, capsys, words, described):
    """Exit code 3, nothing written."""
    (tmp_path / "junk").write_text("junk")
    code = main([word.replace("{folder}", str(tmp_path)) for word in words])
    reported = capsys.readouterr()

    assert (3, "", 1) == (code, reported.out, reported.err.count("\n"))
    assert described in reported.err
    assert [tmp_path / "junk"] == list(tmp_path.iterdir())
