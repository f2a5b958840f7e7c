"""Signing in at a real proxy in front: nginx asks for a password and names the person in a header."""

import getpass
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Browser

from tests.dashboard import answers
from tests.dashboard.browser import chromium, settle
from tests.dashboard.command import START_SECONDS, free_port, serving_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEADER = "X-Forwarded-User"
ANN = ("ann", "throwaway")

# The worker has to read files below the folder of the test, which only its owner can enter.
CONFIG = """
user {user}; worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  map $http_upgrade $connection_header {{ default upgrade; "" close; }}
  server {{
    listen 127.0.0.1:{port};
    auth_basic ackscope; auth_basic_user_file {folder}/people;
    location / {{
      proxy_pass http://{behind}; proxy_http_version 1.1; proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $connection_header;
      proxy_set_header {header} $remote_user;
    }}
  }}
}}
"""


@contextmanager
def proxying(behind: str, folder: Path) -> Iterator[str]:
    """Run nginx in front of `behind` until the block ends; yields its URL."""
    command = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    assert command is not None, "nginx is missing; run scripts/setup.sh test"
    port = free_port()
    (folder / "people").write_text("{}:{{PLAIN}}{}\n".format(*ANN))
    user = getpass.getuser()
    (folder / "nginx.conf").write_text(CONFIG.format(user=user, folder=folder, port=port, behind=behind, header=HEADER))
    process = subprocess.Popen([command, "-p", str(folder), "-c", "nginx.conf", "-e", str(folder / "error.log")])
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + START_SECONDS
    try:
        while True:
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx did not answer"
            try:
                requests.get(url, timeout=2)
                break
            except requests.RequestException:
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this file."""
    with chromium() as started:
        yield started


def test_the_proxy_names_the_person(tmp_path: Path, browser: Browser) -> None:
    """A link leads to its page, the name is shown; without a password, and past the proxy, there is nothing."""
    port = free_port()
    folder = tmp_path / "nginx"
    folder.mkdir()
    with (
        answers.serving(answers.sick("shop")) as exporter,
        serving_page(exporter.url, tmp_path / "none", tmp_path, "", "--login-header", HEADER, port=port) as served,
        proxying(f"127.0.0.1:{port}", folder) as url,
    ):
        refused = requests.get(url, headers={HEADER: "mallory"}, timeout=10).status_code
        stranger = browser.new_page()
        stranger.goto(f"{served.url}/queues")
        stranger.get_by_text("This request did not come through the sign-in proxy").wait_for(timeout=60_000)
        asked_by_strangers = list(exporter.asked)
        context = browser.new_context(
            http_credentials={"username": ANN[0], "password": ANN[1]}, extra_http_headers={HEADER: "mallory"}
        )
        page = context.new_page()
        page.goto(f"{url}/queues?cluster=shop&find=orders")
        settle(page)
        page.get_by_text("Signed in as ann").wait_for(timeout=60_000)
        shown = page.url
        context.close()
        stranger.close()

    assert 401 == refused
    assert [] == asked_by_strangers
    assert f"{url}/queues?cluster=shop&find=orders" == shown
