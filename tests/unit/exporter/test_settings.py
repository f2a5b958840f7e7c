import pytest

from ackscope.errors import ConfigError
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


def test_everything_can_be_said(tmp_path):
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "poll: {interval: 5s}\n",
            (
                "clusters: no cluster is named; "
                "write clusters: {shop: {management: {url: http://user:password@host:15672}}}"
            ),
        ),
        (f"{SHOP}lisen: 127.0.0.1:1\n", "lisen: unknown key, did you mean 'listen'?"),
        (
            SHOP.replace("}}}", ", pasword_file: /x}}}"),
            "clusters.shop.management.pasword_file: unknown key, did you mean 'password_file'?",
        ),
        (
            f"{SHOP}poll: {{interval: soon}}\n",
            "poll.interval: 'soon' is not a duration, write 30s, 5m, 1h or 200ms",
        ),
        (f"{SHOP}poll: {{interval: 0.2s}}\n", "poll.interval: input should be greater than or equal to 1"),
        (
            f"{SHOP}listen: 9419\n",
            "listen: input should be a valid string",
        ),
        (
            f"{SHOP}listen: localhost\n",
            "listen: 'localhost' is not host:port; write 127.0.0.1:9419, or 0.0.0.0:9419 for all addresses",
        ),
        (
            SHOP.replace("shop", '"../shop"'),
            "clusters: '../shop' is no name for a cluster; use letters, digits, dot, dash and underscore",
        ),
        (
            SHOP.replace("http", "amqp"),
            (
                "clusters.shop.management: url: scheme 'amqp', expected http or https, "
                "as in http://user:password@host:15672"
            ),
        ),
        (
            SHOP.replace("}}}", ", password_file: /no/such/file}}}"),
            (
                "clusters.shop.management: password_file: /no/such/file cannot be read (No such file or directory); "
                "check its path and owner"
            ),
        ),
        (
            SHOP.replace("}}}", '}, amqp: {url: "http://u:hush@host"}}}'),
            "clusters.shop.amqp.url: scheme 'http', expected amqp or amqps, as in amqp://user:password@host:5672",
        ),
        (
            SHOP.replace("}}}", '}, amqp: {url: "amqp://host", password_file: /no/such/file}}}'),
            (
                "clusters.shop.amqp: password_file: /no/such/file cannot be read (No such file or directory); "
                "check its path and owner"
            ),
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(tmp_path, text, message):
    """Which file, which key, what is wrong, and what to write instead; never the password."""
    with pytest.raises(ConfigError) as raised:
        loaded(tmp_path, text)

    assert f"{tmp_path}/ackscope.yml: {message}" == str(raised.value)
    assert "hush" not in str(raised.value)


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
    with pytest.raises(ValueError, match=r"is not host:port; write 127\.0\.0\.1:9419"):
        parse_listen(text)


def test_diagnosis_knows_the_probes_by_their_real_prefix(tmp_path):
    """Whoever changes the prefix of the probes need not change it twice."""
    settings = loaded(tmp_path, SHOP + "probes: {prefix: canary}\n")

    assert "canary." in settings.thresholds.own_prefixes
    assert loaded(tmp_path, SHOP).diagnosis == loaded(tmp_path, SHOP).thresholds
