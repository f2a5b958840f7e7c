import pytest

from pipeline.shard import ALL, Shard
from pipeline.storage.watermark import (
    NAME,
    advance_watermark,
    cluster_watermark,
    read_watermark,
    reset_watermark,
)


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


def test_a_shard_speaks_for_its_own_clusters(tmp_path):
    """The watermark of one job says nothing of the clusters of another; that of all clusters counts for each."""
    europe, shop = Shard.parse("eu-*, shop"), Shard(("shop",))
    advance_watermark(tmp_path, "g1", 100.0, europe)
    advance_watermark(tmp_path, "g1", 70.0, shop)

    assert (100.0, 70.0, 0.0) == tuple(read_watermark(tmp_path, "g1", it) for it in (europe, shop, ALL))
    found = {cluster: cluster_watermark(tmp_path, "g1", cluster) for cluster in ("eu-1", "shop", "us-1")}

    assert {"eu-1": 100.0, "shop": 100.0, "us-1": 0.0} == found

    advance_watermark(tmp_path, "g1", 90.0)

    assert 90.0 == cluster_watermark(tmp_path, "g1", "us-1")
    assert 90.0 == read_watermark(tmp_path, "g1", shop)

    reset_watermark(tmp_path, europe)

    assert 90.0 == cluster_watermark(tmp_path, "g1", "eu-1")


def test_shards_have_files_of_their_own():
    """Named by their patterns, in whatever order these are given."""
    assert "" == ALL.suffix
    assert Shard.parse("a,b").suffix == Shard.parse("b, a").suffix != Shard.parse("a").suffix
    assert "x" in ALL
    assert ("eu-1" in Shard.parse("eu-?"), "eu-10" in Shard.parse("eu-?")) == (True, False)

    with pytest.raises(ValueError, match="invalid list of clusters ' ,'; use names or patterns"):
        Shard.parse(" ,")
