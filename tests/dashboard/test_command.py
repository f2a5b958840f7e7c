import signal
import socket
from pathlib import Path

import pytest
import requests

from ackscope.__main__ import main
from ackscope.errors import ConfigError
from dashboard.command import exporter_url, listen_address, rollups_root
from dashboard.settings import PageSettings
from tests.dashboard.answers import Exporter
from tests.dashboard.command import serving_page

URL = "http://127.0.0.1:9419"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            ["--exporter", "127.0.0.1:9419"],
            "--exporter: '127.0.0.1:9419' is not a URL; expected http://127.0.0.1:9419",
            id="no scheme",
        ),
        pytest.param(
            ["--exporter", "http://127.0.0.1:port"],
            "--exporter: not a URL (Port could not be cast to integer value as 'port'); expected http://127.0.0.1:9419",
            id="port is no number",
        ),
        pytest.param(
            ["--exporter", "http://me:hunter2@127.0.0.1:9419"],
            "--exporter: the exporter has no password; remove user and password from the URL",
            id="password",
        ),
        pytest.param(
            ["--exporter", f"{URL}/?x=1"],
            "--exporter: remove ? and # from the URL; expected http://127.0.0.1:9419",
            id="query",
        ),
        pytest.param(
            ["--listen", "localhost"], "--listen: 'localhost' is not host:port; expected 127.0.0.1:8501", id="no port"
        ),
        pytest.param(
            ["--listen", "127.0.0.1:70000"],
            "--listen: '127.0.0.1:70000' is not host:port; expected 127.0.0.1:8501",
            id="port too large",
        ),
        pytest.param(
            ["--base-path", "/ops/a b?"],
            "--base-path: '/ops/a b?' is not a path of letters, digits and - . _ ~; expected /ops/ackscope",
            id="no path",
        ),
        pytest.param(
            ["--semantics", "/nowhere/verified.json"],
            "--semantics: /nowhere/verified.json does not exist; "
            "create it with: ackscope verify --amqp URL --json > FILE",
            id="no file of verify",
        ),
        pytest.param(
            ["--notes", "/"],
            "--notes: / cannot be written; choose a file that this user can write to",
            id="notes are a folder",
        ),
        pytest.param(
            ["--login-header", "X User"],
            "--login-header: 'X User' is not the name of a header; expected X-Forwarded-Email",
            id="not a header",
        ),
        pytest.param(
            ["--login-header", "X-User", "--listen", "0.0.0.0:8501"],
            "--login-header: with --listen 0.0.0.0 anybody could set the header and get access; "
            "run the proxy on the same host (or pod) and listen on 127.0.0.1",
            id="header that could be forged",
        ),
    ],
)
def test_bad_options_are_one_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What, where and what to do instead; exit code 3; never a password."""
    code = main(["dashboard", "--exporter", URL, "--rollups", str(tmp_path), *options])

    assert (3, f"ackscope dashboard: {said}\n") == (code, capsys.readouterr().err)


def test_rollups_that_are_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing folder is fine (the pipeline creates it), a file is not."""
    file = tmp_path / "file"
    file.touch()

    assert 3 == main(["dashboard", "--exporter", URL, "--rollups", str(file)])
    assert f"--rollups: {file} is not a directory" in capsys.readouterr().err


def test_a_port_in_use_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is started, and another port is suggested."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code = main(["dashboard", "--exporter", URL, "--rollups", str(tmp_path), "--listen", f"127.0.0.1:{port}"])

    assert 3 == code
    assert (
        f"ackscope dashboard: --listen: cannot listen on 127.0.0.1:{port} (address already in use); "
        "choose another port, such as 127.0.0.1:8502\n"
    ) == capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "address"),
    [("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:8501", ("::1", 8501)), ("8502", ("127.0.0.1", 8502))],
)
def test_listen_address(text: str, address: tuple[str, int]) -> None:
    """Host and port, an IPv6 address in brackets, or a port alone."""
    assert address == listen_address(text)


def test_a_trailing_slash_is_removed() -> None:
    """A path prefix of a proxy stays."""
    assert "http://host/prefix" == exporter_url("http://host/prefix/")


def test_settings_survive_the_environment(tmp_path: Path) -> None:
    """To variables and back."""
    settings = PageSettings(URL, tmp_path, login_header="X-Forwarded-Email")

    assert settings == PageSettings.from_environ(settings.to_environ())


def test_a_page_without_its_command_says_how_to_start_it() -> None:
    """Somebody ran the script directly."""
    with pytest.raises(ConfigError, match="start the page with: ackscope dashboard --exporter URL"):
        PageSettings.from_environ({})


def test_without_rollups_the_settings_say_so() -> None:
    """In the process of the page too."""
    settings = PageSettings(URL, rollups_root(None))

    assert settings == PageSettings.from_environ(settings.to_environ())
    assert not settings.has_rollups


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_it_ends_cleanly_on_a_signal(number: signal.Signals, exporter: Exporter, tmp_path: Path) -> None:
    """Exit code 0, and only its own line in the log."""
    with serving_page(exporter.url, tmp_path / "none", tmp_path) as served:
        served.process.send_signal(number)
        code = served.process.wait(timeout=20)
        lines = served.log.read_text().splitlines()

    assert 0 == code
    assert [True] == [f"url={served.url} exporter={exporter.url} rollups=" in line for line in lines]


@pytest.mark.slow
def test_it_starts_without_rollups(exporter: Exporter, tmp_path: Path) -> None:
    """The present needs no pipeline."""
    with serving_page(exporter.url, None, tmp_path) as served:
        log = served.log.read_text()

    assert "rollups=none" in log


@pytest.mark.slow
def test_content_policy(exporter: Exporter, tmp_path: Path) -> None:
    """Nothing from other hosts, no scripts except Streamlit's; no secrets."""
    with serving_page(exporter.url, tmp_path / "none", tmp_path) as served:
        policy = requests.get(served.url, timeout=10).headers["content-security-policy"]

    assert "default-src 'self'; script-src 'self' 'sha256-" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy
