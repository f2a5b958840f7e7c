"""Strict files, lenient environments, secrets that never print."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from ackscope.errors import ConfigError
from ackscope.settings import Seconds, Settings, load, secret


class Broker(Settings):
    url: str = "http://localhost:15672"
    password: SecretStr | None = None


class Root(Settings):
    listen: str = "127.0.0.1:9419"
    interval: Seconds = 10.0
    ports: tuple[int, ...] = ()
    broker: Broker = Broker()
    clusters: dict[str, Broker] = {}


def _write(folder: Path, text: str) -> Path:
    path = folder / "ackscope.yml"
    path.write_text(text)
    return path


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    """Every key has one."""
    assert Root() == load(Root, _write(tmp_path, ""), {})


def test_durations_are_read_with_their_unit(tmp_path: Path) -> None:
    """And a bare number is seconds."""
    assert 300.0 == load(Root, _write(tmp_path, "interval: 5m"), {}).interval
    assert 7.0 == load(Root, _write(tmp_path, "interval: 7"), {}).interval


def test_the_environment_wins_at_every_depth(tmp_path: Path) -> None:
    """Two underscores go one level down; names of clusters match whatever their case."""
    path = _write(tmp_path, "listen: a:1\nbroker: {url: b}\nclusters: {Prod: {url: c}}")
    settings = load(
        Root,
        path,
        {
            "ACKSCOPE_LISTEN": "x:9",
            "ACKSCOPE_BROKER__URL": "y",
            "ACKSCOPE_CLUSTERS__PROD__PASSWORD": "geheim",
            "ACKSCOPE_PORTS": "[1, 2]",
        },
    )

    assert ("x:9", "y", "c", (1, 2)) == (
        settings.listen,
        settings.broker.url,
        settings.clusters["Prod"].url,
        settings.ports,
    )
    assert SecretStr("geheim") == settings.clusters["Prod"].password


def test_foreign_environment_variables_are_no_error(tmp_path: Path) -> None:
    """Orchestrators inject variables that merely share the prefix."""
    environ = {"ACKSCOPE_SERVICE_HOST": "10.0.0.1", "ACKSCOPE_BROKER__NO__SUCH": "1", "ACKSCOPE_CLUSTERS": "x"}

    with pytest.raises(ConfigError, match="clusters"):
        load(Root, _write(tmp_path, ""), environ)
    del environ["ACKSCOPE_CLUSTERS"]
    assert Root() == load(Root, _write(tmp_path, ""), environ)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("lisen: a:1", "lisen: unknown key, did you mean 'listen'?"),
        ("broker: {uri: x}", "broker.uri: unknown key, did you mean 'url'?"),
        ("clusters: {p: {pasword: x}}", "clusters.p.pasword: unknown key, did you mean 'password'?"),
        ("zzz: 1", "zzz: unknown key; known keys: broker, clusters, interval, listen, ports"),
        ("interval: soon", "interval: 'soon' is not a duration, write 30s, 5m, 1h or 200ms"),
        ("- a", "must be keys and values, as in `listen: 127.0.0.1:9419`"),
        ("a: [", "line 1: is not YAML (expected the node content, but found '<stream end>')"),
    ],
)
def test_a_bad_file_is_one_line_with_the_key_and_the_nearest_known_one(tmp_path: Path, text: str, line: str) -> None:
    """The text of configuration errors is part of the contract."""
    path = _write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(Root, path, {})

    assert f"{path}: {line}" == str(caught.value)


def test_a_wrong_secret_is_not_repeated(tmp_path: Path) -> None:
    """Even a value that is not accepted may be a secret."""
    with pytest.raises(ConfigError) as caught:
        load(Root, _write(tmp_path, "broker: {password: [geheim]}"), {})

    assert "geheim" not in str(caught.value)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    """It names the file and the reason."""
    path = tmp_path / "none.yml"
    with pytest.raises(ConfigError) as caught:
        load(Root, path, {})

    assert f"{path}: cannot be read (No such file or directory); give an existing file" == str(caught.value)


def test_a_secret_comes_from_its_file_first(tmp_path: Path) -> None:
    """Its first line, without the line break."""
    file = tmp_path / "password"
    file.write_text("geheim\nrest\n")

    assert "geheim" == secret(SecretStr("other"), file, "password_file")
    assert "other" == secret(SecretStr("other"), None, "password_file")
    assert secret(None, None, "password_file") is None


def test_an_unreadable_secret_file_is_one_line(tmp_path: Path) -> None:
    """Missing or empty: the file is named, nothing else."""
    empty = tmp_path / "empty"
    empty.touch()

    with pytest.raises(ConfigError, match=r"password_file: .*none cannot be read"):
        secret(None, tmp_path / "none", "password_file")
    with pytest.raises(ConfigError, match=r"password_file: .*empty is empty"):
        secret(None, empty, "password_file")
