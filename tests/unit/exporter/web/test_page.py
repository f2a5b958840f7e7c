import re
from pathlib import Path

import pytest
import yaml

from exporter.web import app, connections
from exporter.web.config import WebConfig
from exporter.web.settings import HttpSettings, RateSettings, TlsSettings, WebSettings
from tests.unit.exporter.web.certificates import make

PAGE = (Path(__file__).parents[4] / "docs" / "web-config.md").read_text()
EXAMPLE = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_example_is_good(tmp_path):
    """The example is valid unchanged, with the files that it names."""
    for name in ("server", "clients-ca"):
        make(tmp_path, name)
    (tmp_path / "web.yml").write_text(EXAMPLE)

    assert WebConfig.load(tmp_path / "web.yml").tls


@pytest.mark.parametrize(
    ("model", "part"),
    [
        (WebSettings, None),
        (TlsSettings, "tls_server_config"),
        (HttpSettings, "http_server_config"),
        (RateSettings, "rate_limit"),
    ],
)
def test_the_example_shows_every_key(model, part):
    """And no other."""
    document = yaml.safe_load(EXAMPLE)

    assert set(model.model_fields) == set(document if part is None else document[part])


def test_the_limits_are_those_of_the_code():
    """Otherwise numbers in the text would become outdated."""
    reported = PAGE.partition("## Limits of the port")[2]
    numbers = [int(number) for number in re.findall(r"(\d+) (?:connections|s|KiB)", reported)]

    assert [
        connections.MAX_CONNECTIONS,
        connections.REQUEST_SECONDS,
        app.REQUEST_BYTES // 1024,
        connections.IDLE_SECONDS,
        connections.SEND_SECONDS,
        app.BODY_BYTES // 1024,
    ] == numbers
