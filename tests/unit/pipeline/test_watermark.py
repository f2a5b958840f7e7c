import pytest

from pipeline.session import _is_local, _settings
from pipeline.storage.watermark import NAME, advance_watermark, read_watermark


def test_the_watermark_never_goes_back(tmp_path):
    """A `run` that began earlier but ended later does not lower it."""
    advance_watermark(tmp_path, "g1", 100.0)
    advance_watermark(tmp_path, "g1", 50.0)

    assert 100.0 == read_watermark(tmp_path, "g1")


def test_a_watermark_of_other_tables_shows_nothing(tmp_path):
    """Rollups of other table versions are rebuilt, so their watermark is ignored."""
    advance_watermark(tmp_path, "g1", 100.0)

    assert 0.0 == read_watermark(tmp_path, "g2")

    advance_watermark(tmp_path, "g2", 50.0)

    assert (0.0, 50.0) == (read_watermark(tmp_path, "g1"), read_watermark(tmp_path, "g2"))


@pytest.mark.parametrize("text", [b"", b"x", b"[]", b'{"until": 1}', b'{"generation": "g1", "until": null}'])
def test_a_damaged_watermark_is_none(tmp_path, text):
    """Nothing counts as rolled up; the next write replaces it."""
    (tmp_path / NAME).write_bytes(text)

    assert 0.0 == read_watermark(tmp_path, "g1")

    advance_watermark(tmp_path, "g1", 1.0)

    assert 1.0 == read_watermark(tmp_path, "g1")


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://10.0.0.1:7077", False),
        ("spark://spark-master:7077", False),
        ("yarn", False),
    ],
)
def test_only_what_runs_here_stays_on_loopback(tmp_path, master, local):
    """Workers elsewhere must reach the driver."""
    settings = _settings(master, tmp_path / "log4j2.properties", long_lived=False)

    assert local == _is_local(master)
    assert local == (settings.get("spark.driver.host") == settings.get("spark.driver.bindAddress") == "127.0.0.1")
    assert settings["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert "false" == settings["spark.ui.enabled"]
