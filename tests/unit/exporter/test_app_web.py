"""The whole exporter behind the web configuration."""

import bcrypt
import pytest
import requests

from ackscope.clock import SystemClock
from exporter.app import App
from exporter.settings import ExporterSettings

HASH = bcrypt.hashpw(b"hush", bcrypt.gensalt(4)).decode()


@pytest.fixture
def exporter(tmp_path):
    """An exporter that Ann alone may ask, and may read any broker for whom its module is."""
    web = tmp_path / "web.yml"
    web.write_text(f"basic_auth_users: {{ann: {HASH}}}\n")
    document = {
        "listen": "127.0.0.1:0",
        "web_config": web,
        "clusters": {"shop": {"management": {"url": "http://127.0.0.1:1"}}},
        "modules": {"prod": {"targets": ["127.0.0.1:1"]}},
    }
    app = App(ExporterSettings.model_validate(document), SystemClock())
    app.start()
    yield app
    app.stop()


PATHS = (
    "/",
    "/metrics",
    "/api/v1/snapshot",
    "/probe?module=prod&target=127.0.0.1:1",
    "/probe?probe=rtt&target=shop",
)


@pytest.mark.parametrize("path", PATHS)
def test_who_is_not_known_gets_nothing(exporter, path):
    """No page, no probe, no reading of a broker."""
    assert 401 == requests.get(exporter.url + path, timeout=10).status_code
    assert 401 == requests.get(exporter.url + path, auth=("ann", "guess"), timeout=10).status_code


def test_who_is_not_known_cannot_reload(exporter):
    """The only path that changes anything."""
    assert 401 == requests.post(exporter.url + "/-/reload", timeout=10).status_code
    assert 0 == exporter._reloader.status.failures


@pytest.mark.parametrize(("path", "status"), [*((path, 200) for path in PATHS[:-1]), (PATHS[-1], 404)])
def test_who_is_known_gets_every_page(exporter, path, status):
    """As without it."""
    assert status == requests.get(exporter.url + path, auth=("ann", "hush"), timeout=10).status_code
