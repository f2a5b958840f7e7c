import pytest

from pipeline.session import _near, _settings
from pipeline.storage.taken import NAME, note, taken


def test_the_mark_never_goes_back(tmp_path):
    """A `run` that began earlier and ended later tells nothing new."""
    note(tmp_path, "g1", 100.0)
    note(tmp_path, "g1", 50.0)

    assert 100.0 == taken(tmp_path, "g1")


def test_a_mark_of_other_tables_tells_nothing(tmp_path):
    """What was rolled up by other versions is rolled up anew, and its mark with it."""
    note(tmp_path, "g1", 100.0)

    assert 0.0 == taken(tmp_path, "g2")

    note(tmp_path, "g2", 50.0)

    assert (0.0, 50.0) == (taken(tmp_path, "g1"), taken(tmp_path, "g2"))


@pytest.mark.parametrize("text", [b"", b"x", b"[]", b'{"until": 1}', b'{"generation": "g1", "until": null}'])
def test_a_damaged_mark_is_none(tmp_path, text):
    """Nothing is taken for rolled up; the next one is written over it."""
    (tmp_path / NAME).write_bytes(text)

    assert 0.0 == taken(tmp_path, "g1")

    note(tmp_path, "g1", 1.0)

    assert 1.0 == taken(tmp_path, "g1")


@pytest.mark.parametrize(
    ("master", "near"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077", True),
        ("spark://10.0.0.1:7077", False),
        ("spark://spark-master:7077", False),
        ("yarn", False),
    ],
)
def test_only_what_runs_here_stays_on_loopback(tmp_path, master, near):
    """Workers elsewhere must reach the driver."""
    settings = _settings(master, tmp_path / "log4j2.properties", long_lived=False)

    assert near == _near(master)
    assert near == (settings.get("spark.driver.host") == settings.get("spark.driver.bindAddress") == "127.0.0.1")
    assert settings["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")
    assert "false" == settings["spark.ui.enabled"]
