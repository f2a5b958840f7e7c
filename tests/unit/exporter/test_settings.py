import pytest

from ackscope.settings import load
from exporter.settings import ExporterSettings, parse_listen

SHOP = 'clusters: {shop: {management: {url: "http://u:hush@host:15672"}}}\n'


def loaded(folder, text, **environ):
    """The settings in a file of this text."""
    path = folder / "ackscope.yml"
    path.write_text(text)
    return load(ExporterSettings, path, environ)


def test_one_cluster_is_enough(tmp_path):
    """All else has a default."""
    settings = loaded(tmp_path, SHOP)

    assert "127.0.0.1:9419" == settings.listen
    assert 5.0 == settings.poll.interval
    assert settings.landing.directory is None
    assert settings.clusters["shop"].amqp is None


def test_everything_can_be_set(tmp_path):
    """The whole shape of the file, and the environment over it."""
    text = """
listen: 0.0.0.0:1
clusters:
  shop:
    management: {url: "https://host", username: monitor, password: hush, timeout: 3s, verify: false}
    amqp: {url: "amqp://host/probes"}
poll: {interval: 15s}
metrics: {max_queues: 10}
landing: {directory: /data, rotate: 1m}
probes: {enabled: [confirm], confirm: {rate: 1}}
diagnosis: {data_age: 2m}
"""
    settings = loaded(tmp_path, text, ACKSCOPE_POLL__INTERVAL="30s", ACKSCOPE_LISTEN="[::1]:2")

    assert ("[::1]:2", 30.0, 10) == (settings.listen, settings.poll.interval, settings.metrics.limits.queues)
    assert 60.0 == settings.landing.rotate
    assert 120.0 == settings.diagnosis.data_age


def test_secrets_do_not_print(tmp_path):
    """Settings can be logged."""
    settings = loaded(tmp_path, SHOP.replace("}}}", '}, amqp: {url: "amqp://u:hush@host", password: hush2}}}'))

    assert "hush" not in repr(settings)
    assert "hush" not in str(settings)
    assert "hush" not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("[::]:9419", ("::", 9419)), ("rabbit-exporter:80", ("rabbit-exporter", 80))],
)
def test_addresses_to_listen_on(text, expected):
    """Names, and addresses of both kinds."""
    assert expected == parse_listen(text)


@pytest.mark.parametrize("text", ["", ":9419", "::1:9419", "host:", "host:65536", "host:1x", "http://host:1"])
def test_no_addresses_to_listen_on(text):
    """The message says what is."""
    with pytest.raises(ValueError, match=r"use host:port, such as 127\.0\.0\.1:9419"):
        parse_listen(text)


def test_diagnosis_knows_the_probes_by_their_real_prefix(tmp_path):
    """The prefix of the probes needs to be changed in one place only."""
    settings = loaded(tmp_path, SHOP + "probes: {prefix: canary}\n")

    assert "canary." in settings.thresholds.own_prefixes
    assert loaded(tmp_path, SHOP).diagnosis == loaded(tmp_path, SHOP).thresholds
