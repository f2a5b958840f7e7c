from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope.clock import Instant
from ackscope.errors import DataError
from ackscope.tables import ACK_BURSTS, PROBE_MESSAGES
from ackscope.tables.arrow import arrow_schema
from pipeline.hours import first_hour
from pipeline.storage.expired import raise_floor
from pipeline.storage.landing import Landing, Partition, require_folder

DAY = date(2026, 3, 1)
BURSTS = Partition(ACK_BURSTS, "shop", DAY)


def burst(at):
    """A burst at a moment."""
    text = dict.fromkeys(("probe", "stream", "queue_type", "vhost", "node", "run_id"), "x")
    return text | {"at": at, "frames": 1, "multiple_frames": 0, "messages": 1, "interval": None, "span": 0.0}


def hour(number, minute=0, day=DAY):
    """A moment of the day."""
    return datetime(day.year, day.month, day.day, number, minute, tzinfo=UTC)


def write(root, rows, name="a.parquet", partition=BURSTS, schema=None, **options):
    """Write a landing file."""
    folder = root / partition.folder
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=schema or arrow_schema(ACK_BURSTS))
    pq.write_table(table, folder / name, **options)
    return folder / name


@pytest.mark.parametrize("options", [{}, {"write_statistics": False}, {"row_group_size": 1}], ids=str)
def test_shows_rows_hours_and_times(tmp_path, options):
    """The statistics are the same with and without a footer, in one row group or several."""
    moments = [hour(3, 10), hour(3, 59), hour(5), hour(7, 30)]
    path = write(tmp_path, [burst(moment) for moment in moments], **options)

    held = Landing(tmp_path).files(BURSTS)[path]

    assert 4 == held.rows
    assert {first_hour(DAY) + number for number in (3, 5, 7)} == held.hours
    assert (moments[0].timestamp() * 1e6, moments[-1].timestamp() * 1e6) == (held.first, held.last)
    assert 0 == held.misdated


def test_leaves_out_rows_of_another_time(tmp_path, caplog):
    """Rows up to a day off their folder's date count. Others are counted, quarantined once, and affect no other row."""
    days = [date(2026, 2, 27), date(2026, 2, 28), DAY, date(2026, 3, 2), date(2026, 3, 3), date(9999, 1, 1)]
    path = write(tmp_path, [burst(hour(12, day=day)) for day in days])

    held = Landing(tmp_path).files(BURSTS)[path]

    assert (3, 3) == (held.rows, held.misdated)
    assert {first_hour(day) + 12 for day in days[1:4]} == held.hours

    apart = tmp_path / "_quarantine" / BURSTS.folder / "a.rows.parquet"

    assert [days[0], *days[4:]] == [moment.date() for moment in pq.read_table(apart)["at"].to_pylist()]
    (record,) = caplog.records
    assert (str(path), 3, str(apart)) == tuple(record.msg[key] for key in ("file", "count", "copy"))

    stamp = apart.stat().st_mtime_ns
    Landing(tmp_path).files(BURSTS)

    assert stamp == apart.stat().st_mtime_ns
    assert 1 == len(caplog.messages)


@pytest.mark.parametrize("year", [1970, 2100])
def test_a_row_of_another_age_costs_no_other(tmp_path, year):
    """A future row is misdated even in the folder of its own date; an old row is valid."""
    strange = Partition(ACK_BURSTS, "shop", date(year, 1, 2))
    write(tmp_path, [burst(hour(12, day=strange.day))], partition=strange)
    path = write(tmp_path, [burst(hour(12)), burst(hour(12, day=strange.day))])
    landing = Landing(tmp_path)
    held = landing.files(BURSTS)[path]

    assert (1, 1, {first_hour(DAY) + 12}) == (held.rows, held.misdated, held.hours)
    assert [year == 2100] == [bool(it.misdated) for it in landing.files(strange).values()]
    assert [year == 1970] == [bool(it.hours) for it in landing.files(strange).values()]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, wall):
        self.wall = wall

    def now(self):
        """The moment that was set."""
        return Instant(self.wall, self.wall)


def test_rows_of_the_future_wait(tmp_path):
    """A row more than one hour ahead means that some clock was wrong; such rows count when their time has come."""
    noon = hour(12).timestamp()
    path = write(tmp_path, [burst(hour(12, 59)), burst(hour(13, 1))])
    clock = Clock(noon)
    landing = Landing(tmp_path, clock)
    before = landing.files(BURSTS)[path]
    clock.wall = noon + 61
    after = landing.files(BURSTS)[path]

    assert (1, 1, 1) == (before.rows, before.misdated, before.early)
    assert (2, 0, 0) == (after.rows, after.misdated, after.early)


def test_what_may_not_be_read_stays_and_is_reported(tmp_path, caplog, monkeypatch):
    """It is not a bad file: it stays, and is ingested once it is readable."""
    path = write(tmp_path, [burst(hour(1))])
    landing, real = Landing(tmp_path), pq.ParquetFile

    def refuse(*_args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pq, "ParquetFile", refuse)

    assert {} == landing.files(BURSTS)
    assert {} == landing.files(BURSTS)
    (record,) = caplog.records
    assert str(path) == record.msg["file"]
    assert record.msg["event"].startswith("file not readable, ignored")
    assert 0 == landing.quarantined

    monkeypatch.setattr(pq, "ParquetFile", real)
    path.chmod(0o640)

    assert [path] == list(landing.files(BURSTS))


def test_expired_hours_are_never_rebuilt(tmp_path):
    """A late row would be rolled up as if it were the whole hour; the same holds for adjacent hours."""
    path = write(tmp_path, [burst(hour(2, 55)), burst(hour(3, 5))])
    landing = Landing(tmp_path)
    raise_floor(tmp_path, "other", first_hour(DAY) + 9)
    raise_floor(tmp_path, "shop", first_hour(DAY) + 3)
    held = landing.files(BURSTS)[path]

    assert (2, {first_hour(DAY) + 3}) == (held.rows, held.hours)
    assert first_hour(DAY) + 2 not in held.nearby_hours

    raise_floor(tmp_path, "shop", first_hour(DAY) + 2)

    assert first_hour(DAY) + 3 == landing.floor("shop")


def test_a_damaged_watermark_of_expiry_is_reported(tmp_path):
    """Without it nothing may be rebuilt."""
    (tmp_path / "_expired.json").write_bytes(b"x")

    with pytest.raises(
        DataError, match=r"_expired\.json: is damaged \(it records which raw hours have expired\); remove it"
    ):
        Landing(tmp_path).floor("shop")


@pytest.mark.parametrize(
    ("moments", "beside"),
    [((30,), set()), ((5,), {-1}), ((55,), {1}), ((5, 55), {-1, 1})],
    ids=["middle", "beginning", "end", "both"],
)
def test_shows_the_hours_that_its_rows_reach_into(tmp_path, moments, beside):
    """A row affects at most 20 minutes before and after its time."""
    path = write(tmp_path, [burst(hour(3, minute)) for minute in moments])
    held = Landing(tmp_path).files(BURSTS)[path]

    assert {first_hour(DAY) + 3 + shift for shift in beside} == held.nearby_hours - held.hours


def test_hours_between_the_rows_are_near(tmp_path):
    """For a file of several hours the position of rows within the hour is not read."""
    path = write(tmp_path, [burst(hour(3, 30)), burst(hour(6, 30))])

    assert {first_hour(DAY) + number for number in (2, 3, 4, 5, 6, 7)} == Landing(tmp_path).files(BURSTS)[
        path
    ].nearby_hours


def test_a_column_that_an_older_writer_did_not_know_may_be_missing(tmp_path):
    """This holds for nullable columns; they are null for such rows."""
    path = write(tmp_path, [burst(hour(1))], schema=arrow_schema(ACK_BURSTS).remove(10))

    assert "interval" == arrow_schema(ACK_BURSTS).names[10]
    assert 1 == Landing(tmp_path).files(BURSTS)[path].rows


def bad_files():
    """Files that do not fit the table, and the reason."""
    good = arrow_schema(ACK_BURSTS)
    naive = good.set(0, pa.field("at", pa.timestamp("us"), nullable=False))
    loose = pa.schema([field.with_nullable(True) for field in good])
    return [
        pytest.param(good.remove(6), burst(hour(1)), "has no column 'run_id'", id="column missing"),
        pytest.param(naive, burst(hour(1)), "column 'at' is timestamp[us], not timestamp[us, tz=UTC]", id="type"),
        pytest.param(loose, burst(hour(1)) | {"node": None}, "column 'node' has rows without", id="null"),
    ]


@pytest.mark.parametrize(("schema", "row", "reason"), bad_files())
def test_sets_foreign_files_apart(tmp_path, caplog, schema, row, reason):
    """A file that is not of the table is moved away with its reason, and the others stay."""
    path = write(tmp_path, [burst(hour(1))])
    bad = write(tmp_path, [row], "bad.parquet", schema=schema)
    landing = Landing(tmp_path)

    assert [path] == list(landing.files(BURSTS))
    assert not bad.exists()
    assert (tmp_path / "_quarantine" / BURSTS.folder / "bad.parquet").exists()
    assert 1 == landing.quarantined
    assert reason in caplog.text


@pytest.mark.parametrize("groups", [1000, 1001])
def test_a_file_of_thousands_of_row_groups_is_set_apart(tmp_path, caplog, groups):
    """Each costs time, whatever it holds; the exporter writes one a file."""
    path = write(tmp_path, [burst(hour(1, number % 60)) for number in range(groups)], row_group_size=1)
    found = Landing(tmp_path).files(BURSTS)

    assert ([path] if groups == 1000 else []) == list(found)
    assert ("has 1001 row groups, and at most 1000 are read" in caplog.text) == (groups == 1001)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1"])
def test_sets_damaged_files_apart(tmp_path, data):
    """Neither an empty nor a broken file is read, and a second one of that name replaces none in quarantine."""
    landing = Landing(tmp_path)
    for _ in range(2):
        write(tmp_path, [burst(hour(1))]).write_bytes(data)

        assert {} == landing.files(BURSTS)

    assert ["a.parquet", "a.parquet.1"] == sorted(
        path.name for path in (tmp_path / "_quarantine" / BURSTS.folder).iterdir()
    )


def test_looks_again_at_a_file_that_changed(tmp_path):
    """Statistics of a file are cached until the file changes."""
    landing = Landing(tmp_path)
    path = write(tmp_path, [burst(hour(1))])
    before = landing.files(BURSTS)[path]

    assert before is landing.files(BURSTS)[path]

    write(tmp_path, [burst(hour(1)), burst(hour(2))])

    assert 2 == landing.files(BURSTS)[path].rows


def test_reads_only_what_the_layout_names(tmp_path):
    """Unfinished, hidden and foreign names are not ours; nor is a folder that is no date, no cluster, no table."""
    path = write(tmp_path, [burst(hour(1))])
    for name in (".a.parquet", "_a.parquet", "a.parquet.tmp", "a.txt"):
        path.with_name(name).write_bytes(b"x")
    for folder in (
        "other/cluster=shop/date=2026-03-01",
        "ack_bursts/shop/date=2026-03-01",
        "ack_bursts/cluster=a b/date=2026-03-01",
        "ack_bursts/cluster=../date=2026-03-01",
        "ack_bursts/cluster=shop/date=2026-13-01",
        "_quarantine/ack_bursts/cluster=shop/date=2026-03-01",
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    landing = Landing(tmp_path)

    assert [BURSTS] == list(landing.partitions())
    assert [path] == list(landing.files(BURSTS))
    assert landing.partition_of(tmp_path / "ack_bursts/cluster=../date=2026-03-01") is None
    assert landing.partition_of(tmp_path.parent) is None


def test_finds_files_by_time(tmp_path):
    """Rows of an hour may stand in the folder of the day before; files of other tables and times are left."""
    eve = Partition(ACK_BURSTS, "shop", date(2026, 2, 28))
    near = write(tmp_path, [burst(hour(0, 10))], partition=eve)
    inside = write(tmp_path, [burst(hour(0, 50))])
    write(tmp_path, [burst(hour(1))], "later.parquet")
    start = first_hour(DAY) * 3600
    landing = Landing(tmp_path)

    assert {near, inside} == set(landing.covering(ACK_BURSTS, "shop", start, start + 3600))
    assert {} == landing.covering(PROBE_MESSAGES, "shop", start, start + 3600)
    assert {} == landing.covering(ACK_BURSTS, "other", start, start + 3600)


def test_doubt_finds_damaged_pages(tmp_path):
    """A file with a valid footer and damaged pages is found by reading it completely."""
    good = write(tmp_path, [burst(hour(1))])
    bad = write(tmp_path, [burst(hour(1, minute)) for minute in range(60)] * 50, "bad.parquet")
    column = pq.read_metadata(bad).row_group(0).column(ACK_BURSTS.names.index("span"))
    data = bytearray(bad.read_bytes())
    data[column.data_page_offset : column.data_page_offset + 30] = b"\xff" * 30
    bad.write_bytes(data)
    landing = Landing(tmp_path)
    paths = list(landing.files(BURSTS))

    assert {good, bad} == set(paths)
    assert 1 == landing.quarantine_damaged(ACK_BURSTS, paths)
    assert [good] == list(landing.files(BURSTS))
    assert 0 == landing.quarantine_damaged(ACK_BURSTS, [good])


def test_refuses_a_file_for_a_folder(tmp_path):
    """A landing path that is a file is refused in one line; one that is not there yet is fine."""
    path = tmp_path / "landing"
    require_folder(path)
    path.write_text("x")

    with pytest.raises(DataError, match="is a file; pass the folder that the exporter writes to"):
        require_folder(path)
