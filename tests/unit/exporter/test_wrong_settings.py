"""Every wrong configuration gives one line: file or variable, key, error, and what to do."""

import pytest

from ackscope.__main__ import main
from ackscope.errors import ConfigError
from ackscope.settings import load
from exporter.settings import ExporterSettings

SHOP = 'clusters: {shop: {management: {url: "http://u:hush@host:15672"}}}\n'
"""A valid configuration of one cluster."""


def management(text):
    """One cluster with more keys of its management API."""
    return SHOP.replace("}}}", f", {text}}}}}}}")


def amqp(text):
    """One cluster with an AMQP address."""
    return SHOP.replace("}}}", f"}}, amqp: {{{text}}}}}}}")


def module(text):
    """One module."""
    return f"modules: {{prod: {{{text}}}}}\n"


NO_FILE = "/no/such/file cannot be read (No such file or directory); check its path and owner"
NO_PEM = "/no/such/file is no readable file of PEM certificates; give that of the authority that signed the broker's"
NO_AMQP_PEM = (
    "/no/such/file is not a readable file of PEM certificates; use the certificate of the CA that signed the broker's"
)
NO_CLUSTER = (
    "the file: no cluster and no module configured; "
    "add clusters: {shop: {management: {url: http://user:password@host:15672}}}"
)
AS_LISTEN = "use host:port, such as 127.0.0.1:9419, or 0.0.0.0:9419 for all interfaces"
AS_IN = "expected http or https, as in http://user:password@host:15672"

WRONG = [
    # The file as a whole.
    ("", NO_CLUSTER),
    ("poll: {interval: 5s}\n", NO_CLUSTER),
    ("- clusters\n", "must be keys and values, as in `listen: 127.0.0.1:9419`"),
    ("just text\n", "must be keys and values, as in `listen: 127.0.0.1:9419`"),
    ("clusters: [\n", "line 2: is not YAML (expected the node content, but found '<stream end>')"),
    ("clusters:\n\tshop: {}\n", "line 2: a tab; YAML is indented by spaces"),
    (f"{SHOP}poll: {{}}\npoll: {{}}\n", "line 3: the key 'poll' is there twice; keep one"),
    ("clusters:\n  shop: {}\n  shop: {}\n", "line 3: the key 'shop' is there twice; keep one"),
    # Keys that are not known.
    (f"{SHOP}lisen: 127.0.0.1:1\n", "lisen: unknown key, did you mean 'listen'?"),
    (f"{SHOP}poll: {{intervall: 5s}}\n", "poll.intervall: unknown key, did you mean 'interval'?"),
    (
        management("pasword_file: /x"),
        "clusters.shop.management.pasword_file: unknown key, did you mean 'password_file'?",
    ),
    (module("targets: [a:1], url: x"), "modules.prod.url: unknown key"),
    # Where to listen.
    (f"{SHOP}listen: 9419\n", "listen: must be text; put it in quotes"),
    (
        f"{SHOP}listen: localhost\n",
        f"listen: invalid listen address 'localhost'; {AS_LISTEN}",
    ),
    (
        f"{SHOP}listen: 127.0.0.1:99999\n",
        f"listen: invalid listen address '127.0.0.1:99999'; {AS_LISTEN}",
    ),
    # Clusters.
    ("clusters: [shop]\n", "clusters: must be keys and values"),
    (
        "clusters: {shop: {}}\n",
        (
            "clusters.shop: no source; set management.url, or prometheus.urls if only the Prometheus endpoints can "
            "be reached"
        ),
    ),
    (
        SHOP.replace("shop", '"../shop"'),
        "clusters: invalid cluster name '../shop'; use letters, digits, dot, dash and underscore",
    ),
    (SHOP.replace("http:", "ftp:"), f"clusters.shop.management: url: scheme 'ftp', {AS_IN}"),
    (SHOP.replace("http://u:hush@host:15672", "host"), f"clusters.shop.management: url: no scheme, {AS_IN}"),
    (
        SHOP.replace("u:hush@host:15672", "/api"),
        "clusters.shop.management: url: no host, expected http://user:password@host:15672",
    ),
    (
        SHOP.replace(":15672", ":99999"),
        (
            "clusters.shop.management: url: not an address, or a port above 65535; "
            "expected http://user:password@host:15672"
        ),
    ),
    (
        management("password: hush, password_file: /x"),
        "clusters.shop.management: both password and password_file are set; keep one",
    ),
    (management("password_file: /no/such/file"), f"clusters.shop.management: password_file: {NO_FILE}"),
    (
        SHOP.replace("http:", "https:").replace("}}}", ", ca_file: /no/such/file}}}"),
        (
            "clusters.shop.management: ca_file: cannot read PEM certificates from /no/such/file; "
            "use the certificate of the authority that signed the broker's"
        ),
    ),
    (
        management("verify: perhaps"),
        "clusters.shop.management.verify: must be true or false",
    ),
    (management("timeout: 0s"), "clusters.shop.management.timeout: must be more than 0"),
    (
        amqp('url: "http://u:hush@host"'),
        "clusters.shop.amqp.url: scheme 'http', expected amqp or amqps, as in amqp://user:password@host:5672",
    ),
    (
        amqp('url: "amqp://host", password: hush, password_file: /x'),
        "clusters.shop.amqp: both password and password_file are set; keep one",
    ),
    (amqp('url: "amqp://host", password_file: /no/such/file'), f"clusters.shop.amqp: password_file: {NO_FILE}"),
    (amqp('url: "amqps://host", ca_file: /no/such/file'), f"clusters.shop.amqp: ca_file: {NO_AMQP_PEM}"),
    (
        amqp('url: "amqp://host", nodes: {"a b": "amqp://x"}'),
        "clusters.shop.amqp.nodes: invalid node name 'a b'; use the broker's form, such as rabbit@one",
    ),
    (
        management("token: hush, token_file: /x"),
        "clusters.shop.management: both token and token_file are set; keep one",
    ),
    (
        management("token: hush, username: u"),
        "clusters.shop.management: both token and username are set; a token replaces user and password: keep one",
    ),
    (
        management("key_file: /x"),
        "clusters.shop.management: key_file is set without cert_file; set cert_file to the certificate of this key",
    ),
    (
        management("cert_file: /x"),
        ("clusters.shop.management: cert_file is set and url is http://; use https://, a certificate needs TLS"),
    ),
    # Our own port.
    (
        f"{SHOP}web_config: /no/such/file\n",
        "web_config: /no/such/file: cannot be read (No such file or directory); give an existing file",
    ),
    # Polling.
    (f"{SHOP}poll: {{budget: 2}}\n", "poll.budget: must be at most 1"),
    (f"{SHOP}poll: {{budget: 0}}\n", "poll.budget: must be at least 0.001"),
    (f"{SHOP}poll: {{interval: soon}}\n", "poll.interval: 'soon' is not a duration, write 30s, 5m, 1h or 200ms"),
    (f"{SHOP}poll: {{interval: 0.2s}}\n", "poll.interval: must be at least 1"),
    (f"{SHOP}poll: fast\n", "poll: must be keys and values"),
    # Caps and patterns.
    (f"{SHOP}metrics: {{max_queues: -1}}\n", "metrics.max_queues: must be at least 0"),
    (
        f"{SHOP}metrics: {{max_queues: many}}\n",
        "metrics.max_queues: must be a whole number",
    ),
    (
        f'{SHOP}metrics: {{include_queues: "("}}\n',
        (
            "metrics.include_queues: invalid regular expression '(': "
            "missing ), unterminated subpattern at position 0; use '^shop/orders' for example"
        ),
    ),
    # Landing and probes.
    (f"{SHOP}landing: {{rotate: 2h}}\n", "landing.rotate: must be at most 3600"),
    (
        f"{SHOP}probes: {{enabled: [confirms]}}\n",
        (
            "probes.enabled: unknown probe 'confirms', did you mean 'confirm'?; "
            "known: confirm, delivery, settle, streaming, handshake, outcomes, prefetch, redelivery, rtt, nack, reject"
        ),
    ),
    (f"{SHOP}metrics: {{names: kbudde}}\n", "metrics.names: must be 'official', 'rabbitmq_exporter' or 'both'"),
    # Modules.
    (
        module("targets: [a:1], cert_file: /x"),
        "modules: prod: cert_file is set and url is http://; use https://, a certificate needs TLS",
    ),
    (module("username: x"), "modules.prod.targets: must be set"),
    (module("targets: []"), "modules.prod.targets: must have at least 1"),
    (
        module('targets: ["("]'),
        (
            "modules.prod.targets: invalid target '(': neither host:port nor a regular expression "
            "(missing ), unterminated subpattern at position 0)"
        ),
    ),
    (
        module('targets: ["http://a:1"]'),
        "modules.prod.targets: invalid target 'http://a:1': a URL; use host:port, or a regular expression for it",
    ),
    (module("targets: [a:1], scheme: amqp"), "modules.prod.scheme: must be 'http' or 'https'"),
    (
        module("targets: [a:1], families: [queue]"),
        "modules.prod.families: unknown family 'queue', did you mean 'queues'?",
    ),
    (module("targets: [a:1], at_once: 0"), "modules.prod.at_once: must be at least 1"),
    (module("targets: [a:1], password_file: /no/such/file"), f"modules: prod: password_file: {NO_FILE}"),
    (
        module("targets: [a:1], password: hush, password_file: /x"),
        "modules: prod: both password and password_file are set; keep one",
    ),
]
"""Text of the file -> the message, or its start if a list of known names follows."""

LISTS = ("unknown key", "did you mean 'queues'?")


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_a_mistake_is_reported_in_one_line(tmp_path, text, message):
    """Never with the password, whatever is wrong."""
    path = tmp_path / "ackscope.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(ExporterSettings, path, {})
    reported = str(raised.value)

    if message.endswith(LISTS):
        assert reported.startswith(f"{path}: {message}; known")
    else:
        assert f"{path}: {message}" == reported
    assert "hush" not in reported
    assert "\n" not in reported


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (
            "ACKSCOPE_POLL__INTERVAL",
            "soon",
            "poll.interval: 'soon' is not a duration, write 30s, 5m, 1h or 200ms",
        ),
        ("ACKSCOPE_CLUSTERS__SHOP__MANAGEMENT__URL", "nowhere", f"clusters.shop.management: url: no scheme, {AS_IN}"),
        (
            "ACKSCOPE_METRICS__MAX_QUEUES",
            "[1]",
            "metrics.max_queues: must be a whole number",
        ),
        ("ACKSCOPE_CLUSTERS", "shop", "clusters: must be keys and values"),
    ],
)
def test_a_mistake_in_the_environment_is_reported_by_its_variable(tmp_path, variable, value, message):
    """Nobody should look for it in the file."""
    path = tmp_path / "ackscope.yml"
    path.write_text(SHOP)
    with pytest.raises(ConfigError) as raised:
        load(ExporterSettings, path, {variable: value})

    assert f"{variable}: {message}" == str(raised.value)


@pytest.mark.parametrize("text", [text for text, _ in WRONG[::6]])
def test_a_check_of_the_file_reports_the_same(tmp_path, capsys, text):
    """With exit code 3, and nothing on the way out of a pipe."""
    path = tmp_path / "ackscope.yml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        load(ExporterSettings, path, {})
    code = main(["exporter", "--config", str(path), "--check-config"])
    reported = capsys.readouterr()

    assert (3, "", f"ackscope exporter: {raised.value}\n") == (code, reported.out, reported.err)
