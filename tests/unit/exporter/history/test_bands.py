import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ackscope import manifest
from ackscope.baselines import Band, NoBand, NotYet
from ackscope.errors import DataError
from exporter.history import bands
from exporter.history.bands import read_bands
from tests.unit.exporter.history.shelf import HOUR, row, shelve, unknown
from tests.unit.exporter.made import WALL


def test_bands_of_an_hour_are_read(tmp_path):
    """The result has the bands, reasons for missing ones, and the end of the history."""
    file = shelve(tmp_path, row(), unknown(), row("published", made_at=WALL - 7200))
    baselines, files = read_bands(tmp_path, "shop", HOUR)

    assert Band(1.0, 5.0, 9.0, "hour-of-week", 6) == baselines.of("queue", "/", "orders", "ready")
    assert NotYet(NoBand.FEW_DAYS, 2) == baselines.of("queue", "/", "orders", "acked")
    assert NotYet(NoBand.NO_HISTORY_OF_OBJECT) == baselines.of("queue", "/", "other", "ready")
    assert (HOUR, WALL - 3600) == (baselines.hour_of_week, baselines.made_at)
    assert (str(file.relative_to(tmp_path)),) == files


def test_a_band_with_a_hole_in_it_is_none(tmp_path):
    """A missing edge is not guessed."""
    shelve(tmp_path, row(high=None), row("acked", scope="hour-of-moon"))
    baselines, _ = read_bands(tmp_path, "shop", HOUR)

    assert NotYet(NoBand.UNKNOWN) == baselines.of("queue", "/", "orders", "ready")
    assert NotYet(NoBand.UNKNOWN) == baselines.of("queue", "/", "orders", "acked")


def test_nothing_rolled_up_yet_is_no_error(tmp_path):
    """No folder, no catalog, another cluster, another hour, an empty file."""
    shelve(tmp_path, cluster="empty")
    shelve(tmp_path, row(hour=HOUR + 1), hour=HOUR + 1)

    for root, cluster in ((tmp_path / "gone", "shop"), (tmp_path, "other"), (tmp_path, "shop"), (tmp_path, "empty")):
        baselines, _ = read_bands(root, cluster, HOUR)

        assert ({}, None) == (dict(baselines.bands), baselines.made_at)


def test_a_file_that_is_replaced_while_it_is_looked_for_is_looked_for_again(tmp_path, monkeypatch):
    """The catalog names another file by that time."""
    shelve(tmp_path, row(), digest="old").unlink()
    before, looks = manifest.read, []

    def read(root, cluster):
        looks.append(before(root, cluster))
        shelve(tmp_path, row(high=10.0), digest="new", number=2)
        return looks[-1]

    monkeypatch.setattr(manifest, "read", read)
    baselines, files = read_bands(tmp_path, "shop", HOUR)

    assert 10.0 == baselines.of("queue", "/", "orders", "ready").high
    assert files[0].endswith("new.parquet")


def _missing(file):
    file.unlink()


def _damaged(file):
    file.write_bytes(b"PAR1" + b"x" * 100)


def _foreign(file):
    pq.write_table(pa.table({"a": [1]}), file)


def _folder(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("harm", "described"),
    [
        (_missing, "listed in the manifest but missing; repair it with `ackscope pipeline run`"),
        (_damaged, "cannot be read (corrupt file); repair it with `ackscope pipeline run`"),
        (_foreign, "column 'high' is missing; repair it with `ackscope pipeline run`"),
        (_folder, "cannot be read ("),
    ],
    ids=["missing", "damaged", "foreign", "folder"],
)
def test_what_cannot_be_read_is_one_line(tmp_path, harm, described):
    """The file, and what to do."""
    file = shelve(tmp_path, row())
    harm(file)
    with pytest.raises(DataError) as caught:
        read_bands(tmp_path, "shop", HOUR)

    assert str(file) in str(caught.value)
    assert described in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_more_bands_are_read_than_memory_is_meant_for(tmp_path, monkeypatch, caplog):
    """And that is said."""
    monkeypatch.setattr(bands, "MAX_BANDS", 2)
    shelve(tmp_path, *(row(f"measure{number}") for number in range(5)))
    baselines, _ = read_bands(tmp_path, "shop", HOUR)

    assert 2 == len(baselines.bands)
    assert (5, 2) == (caplog.records[0].msg["count"], caplog.records[0].msg["limit"])
