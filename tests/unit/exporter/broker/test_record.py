import orjson

from exporter.broker.record import record, strip
from exporter.broker.settings import ManagementSettings
from tests.unit.exporter.broker.server import broker, fixture, serve


def test_a_recording_replays(tmp_path):
    """What was recorded from a broker is what it answered, a file a family, below its version."""
    with serve(broker("4.3.6")) as server:
        folder = record(ManagementSettings(url=server.url), tmp_path)

    assert tmp_path / "4.3.6" == folder
    assert {file.stem: orjson.loads(file.read_bytes()) for file in folder.iterdir()} == {
        family: fixture("4.3.6", family)
        for family in ("overview", "nodes", "queues", "channels", "consumers", "connections", "health")
    }


def test_secrets_and_paths_are_removed():
    """Nothing in a recording lets anybody in, or tells of the host's files."""
    payload = {
        "db_dir": "/var/lib/rabbitmq",
        "ssl_opts": {"password": "s3cret"},
        "arguments": {"uri": "amqp://u:s3cret@mq", "x-password": "s3cret", "n": [1, "a"]},
    }

    assert {"arguments": {"uri": "amqp://u:***@mq", "x-password": "(removed)", "n": [1, "a"]}} == strip(payload)
