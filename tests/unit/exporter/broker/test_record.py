import orjson
import pytest

from ackscope.errors import BadAnswer
from exporter.broker.families import FAMILIES
from exporter.broker.record import record, strip
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import broker, fixture, serve


@pytest.mark.parametrize("shape", ["one-down", "linked"])
def test_a_recording_replays(tmp_path, shape):
    """A recording contains the broker's answers, one file per family, in a folder per version."""
    with serve(broker("4.3.6", shape)) as server:
        folder = record(ManagementSettings(url=server.url), tmp_path)

    assert tmp_path / "4.3.6" == folder
    assert {file.stem: orjson.loads(file.read_bytes()) for file in folder.iterdir()} == {
        family: fixture("4.3.6", family, shape) for family in FAMILIES
    }


def test_a_named_shape_may_lack_families(tmp_path):
    """A refused family has no file; without a shape it is an error, and nothing is written."""
    with serve(broker("4.0.5", "no-statistics")) as server:
        folder = record(ManagementSettings(url=server.url), tmp_path, "no-statistics")
        with pytest.raises(BadAnswer):
            record(ManagementSettings(url=server.url), tmp_path / "none")

    assert tmp_path / "4.0.5" / "no-statistics" == folder
    assert set(FAMILIES) - {"channels", "consumers"} == {file.stem for file in folder.iterdir()}
    assert not (tmp_path / "none").exists()


def test_secrets_and_paths_are_removed():
    """A recording contains no credentials and no host paths."""
    payload = {
        "db_dir": "/var/lib/rabbitmq",
        "ssl_opts": {"password": "s3cret"},
        "arguments": {"uri": "amqp://u:s3cret@mq", "x-password": "s3cret", "n": [1, "a"]},
    }

    assert {"arguments": {"uri": "amqp://u:***@mq", "x-password": "(removed)", "n": [1, "a"]}} == strip(payload)
