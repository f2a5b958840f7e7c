"""Addresses of object storage; what needs a server is in tests/integration/storage."""

from pathlib import Path, PurePosixPath

import pytest

from ackscope.errors import UsageError
from ackscope.object_path import ObjectPath, place, relative

ROOT = ObjectPath("s3://history", "a/b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/var/lib/x", Path("/var/lib/x")),
        ("x/y", Path("x/y")),
        ("file:///var/lib/x", Path("/var/lib/x")),
        ("s3://history/a/b/", ROOT),
        ("s3://history//a//b", ROOT),
        ("s3://history", ObjectPath("s3://history")),
        ("gs://history/a", ObjectPath("gs://history", "a")),
        ("az://history/a", ObjectPath("az://history", "a")),
    ],
)
def test_a_path_or_a_url_is_a_place(text, found):
    """Paths, `file://` and the three kinds of object storage."""
    assert found == place(text)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("s3a://history/a", "write s3://"),
        ("abfss://history/a", "write az://"),
        ("gcs://history/a", "write gs://"),
        ("hdfs://name:8020/a", "mount it"),
        ("ftp://history/a", "use s3://"),
        ("file://other/a", "another machine"),
        ("s3:///a", "no bucket"),
        ("s3://key:hunter2@history/a", "no credentials"),
        ("az://history/a?sig=hunter2", "no credentials"),
    ],
)
def test_other_addresses_are_refused_with_what_to_do_and_without_secrets(text, word):
    """One line that never repeats a password or a signature."""
    with pytest.raises(UsageError, match=word) as error:
        place(text)
    assert "hunter2" not in str(error.value)


def test_an_object_path_behaves_like_a_path():
    """Parts, neighbours and the part below a folder."""
    path = ROOT / "t" / "cluster=a%2Fb" / PurePosixPath("x.json")

    assert "s3://history/a/b/t/cluster=a%2Fb/x.json" == str(path)
    assert ("x.json", "x", "cluster=a%2Fb") == (path.name, path.stem, path.parent.name)
    assert PurePosixPath("t/cluster=a%2Fb/x.json") == relative(path, ROOT)
    assert ROOT / "c" == ROOT.parent.with_name("a") / "b" / "c"
    with pytest.raises(ValueError, match="not below"):
        relative(path, Path("/a"))
