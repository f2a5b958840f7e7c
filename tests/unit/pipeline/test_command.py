import fcntl
import json

import pytest

from ackscope.__main__ import main
from ackscope.tables import ROLLUPS
from pipeline import jobs
from pipeline.cli.run import report

pytestmark = pytest.mark.usefixtures("restored_signals")


@pytest.fixture
def pipeline(tmp_path, capsys):
    """Run `ackscope pipeline` over folders of the test: exit code, stdout, stderr."""

    def run(verb, *more, landing=tmp_path / "landing", rollups=tmp_path / "rollups"):
        try:
            code = main(["pipeline", verb, "--landing", str(landing), "--rollups", str(rollups), *more])
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    return run


def test_nothing_to_read_is_reported(pipeline, tmp_path):
    """Without landing files `run` says so, succeeds, and needs no Java."""
    code, out, err = pipeline("run")

    assert (0, f"nothing to read: {tmp_path}/landing has no valid landing files\n", "") == (code, out, err)


def test_nothing_to_read_as_json(pipeline):
    """The JSON document has every count, all zero."""
    code, out, _ = pipeline("run", "--json")
    document = json.loads(out)

    assert 0 == code
    assert 0 < document.pop("seconds") + 1
    assert dict.fromkeys(ROLLUPS, 0) == document.pop("rollup_rows")
    assert {
        "landing_files": 0,
        "landing_rows": 0,
        "hours": 0,
        "rollup_files": 0,
        "quarantined": 0,
        "misdated_rows": 0,
    } == document


@pytest.mark.parametrize("verb", ["run", "stream", "compact", "expire"])
def test_landing_that_is_a_file(pipeline, tmp_path, verb):
    """Reported in one line, with 3, before Java is started."""
    path = tmp_path / "file"
    path.write_text("x")

    assert (
        3,
        "",
        f"ackscope pipeline: --landing {path}: is a file; pass the folder that the exporter writes to\n",
    ) == pipeline(verb, landing=path)


@pytest.mark.parametrize("verb", ["run", "stream", "compact", "expire"])
def test_rollups_that_cannot_be_written(pipeline, tmp_path, verb):
    """Reported in one line, with 3, before Java is started."""
    (tmp_path / "file").write_text("x")

    code, out, err = pipeline(verb, rollups=tmp_path / "file")

    assert (3, "") == (code, out)
    assert (
        f"ackscope pipeline: --rollups {tmp_path}/file: cannot be written (File exists); "
        "pass a folder that this user can write\n"
    ) == err


def test_checkpoint_that_cannot_be_made(pipeline, tmp_path):
    """Reported in one line, with 3, before Java is started."""
    (tmp_path / "file").write_text("x")

    code, _, err = pipeline("stream", "--checkpoint", str(tmp_path / "file"))

    assert 3 == code
    assert 1 == len(err.splitlines())
    assert "cannot be created (Not a directory); pass a folder that this user can write" in err


def test_checkpoint_of_another_stream(pipeline, tmp_path):
    """The checkpoint of a running stream is refused, before Java is started."""
    progress = tmp_path / "rollups" / "_checkpoint" / jobs.generation()
    progress.mkdir(parents=True)
    with (progress / "_lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        code, out, err = pipeline("stream")

    assert (3, "") == (code, out)
    assert (
        f"ackscope pipeline: --checkpoint {progress.parent}: another stream uses it; "
        "stop that stream or pass another folder\n"
    ) == err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--trigger", "1x"], "'1x' is not a duration, write 30s, 5m, 1h or 200ms"),
        (["--analyse-every", "10s"], "'10s' is not between 1m and 1h"),
        (["--trigger", "10ms"], "'10ms' is too short, each trigger lists the whole landing folder; use 500ms or more"),
        (["--master", "locol"], "--master 'locol' is not a Spark master; use local[2], local[*], spark://"),
    ],
)
def test_bad_options(pipeline, words, message):
    """An invalid option gives one line and exit code 3."""
    code, out, err = pipeline("stream", *words)

    assert (3, "", 1) == (code, out, len(err.splitlines()))
    assert message in err


@pytest.mark.parametrize("address", ["s3a://bucket/landing", "ftp://b/x", "hdfs://name:8020/x", "s3://key:word@b/x"])
def test_other_addresses_are_refused(pipeline, address):
    """An address is rejected in one line, and not used as a folder name."""
    code, out, err = pipeline("run", landing=address)

    assert (3, "", 1) == (code, out, len(err.splitlines()))
    assert "ackscope pipeline run: argument --landing: " in err
    assert ":word@" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"landing": "s3://b/l", "words": ["--checkpoint", "x"]}, "landing files in a bucket need none; leave it out"),
        ({"words": ["--checkpoint", "s3://b/x"]}, "--checkpoint s3://b/x: is not a folder"),
        ({"rollups": "s3://b/r"}, "--checkpoint is missing"),
    ],
)
def test_a_checkpoint_is_a_folder_and_for_folders(pipeline, words, message):
    """One line that says what to do instead."""
    code, out, err = pipeline("stream", *words.pop("words", ()), **words)

    assert (3, "", 1) == (code, out, len(err.splitlines()))
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["2026-03-02", "2026-03-01"], "--to 2026-03-01 is before --from 2026-03-02; swap them"),
        (["2026-02-30", "2026-03-01"], "invalid date '2026-02-30'; use 2026-03-01"),
        (["yesterday", "2026-03-01"], "invalid date 'yesterday'; use 2026-03-01"),
    ],
)
def test_dates_that_cannot_be_meant(pipeline, words, message):
    """Reported in one line, with 3."""
    code, out, err = pipeline("backfill", "--from", words[0], "--to", words[1])

    assert (3, "", 1) == (code, out, len(err.splitlines()))
    assert message in err


def test_nothing_to_rebuild_or_put_together(pipeline):
    """Dates without landing rows, and a folder without files: said, and no Java is needed."""
    assert (0, "nothing to rebuild: landing has no rows of 2026-03-01 to 2026-03-02\n", "") == pipeline(
        "backfill", "--from", "2026-03-01", "--to", "2026-03-02"
    )
    code, out, err = pipeline("compact")

    assert (0, "") == (code, err)
    assert [
        "landing  nothing to compact: no completed day has several small files that are rolled up",
        "rollups  0 days of tables became one file each",
    ] == out.splitlines()[:2]


def test_reports_for_people(tmp_path):
    """The summary says what was read, written, quarantined and ignored."""
    summary = jobs.RunSummary(
        landing_files=2, landing_rows=10, hours=1, rollup_files=3, quarantined=1, misdated_rows=4, seconds=9.26
    )

    lines = report(summary, tmp_path).splitlines()

    assert "read    10 rows of 2 landing files, 1 hours" == lines[0]
    assert "wrote   3 rollup files in 9.3 s" == lines[1]
    assert f"moved   1 bad files to {tmp_path}/_quarantine" == lines[-2]
    assert f"ignored 4 misdated rows; copies are in {tmp_path}/_quarantine" == lines[-1]


def test_generation_names_every_version():
    """A checkpoint is valid for these versions of tables and buckets only."""
    assert "landing-1.1.1.2.1.1.1.1.1_rollups-1.1.1.1.2.1.1.1.1_log48-v1_catalog-1" == jobs.generation()
