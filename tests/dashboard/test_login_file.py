"""The file of `--login`: errors are one line; secrets are never printed."""

import logging
import re
from pathlib import Path

import pytest

from ackscope.__main__ import main
from dashboard.auth.login_file import read
from dashboard.command import is_loopback
from dashboard.settings import PageSettings
from tests.dashboard.command import free_port

SECRET = "s3cret-of-the-client"
OPEN = "no --login: anybody who can reach the dashboard can read everything and run probes"
GOOD = {
    "metadata_url": "https://login.example.org/.well-known/openid-configuration",
    "client_id": "ackscope",
    "client_secret_file": "client",
    "redirect_uri": "https://page.example.org/ops/oauth2callback",
    "allow": "{domains: [example.org]}",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With the client secret, readable by its owner only."""
    (tmp_path / "client").write_text(f"{SECRET}\n")
    (tmp_path / "client").chmod(0o600)
    return tmp_path


def written(folder: Path, **changes: str | None) -> Path:
    """Write a valid file with these changes; None removes a key."""
    lines = {**GOOD, **changes}
    path = folder / "login.yml"
    path.write_text("".join(f"{key}: {value}\n" for key, value in lines.items() if value is not None))
    return path


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"client_id": None}, "client_id: must be set", id="a key is missing"),
        pytest.param(
            {"client_secret": SECRET},
            "client_secret: unknown key, did you mean 'client_secret_file'?",
            id="the secret itself",
        ),
        pytest.param(
            {"metadata_url": "https://login.example.org"},
            "metadata_url: must be the URL that ends in /.well-known/openid-configuration",
            id="the provider's front page",
        ),
        pytest.param(
            {"metadata_url": "http://login.example.org/.well-known/openid-configuration"},
            "metadata_url: must be https, because credentials are sent to it; http is for loopback only",
            id="a provider without TLS",
        ),
        pytest.param(
            {"redirect_uri": "page.example.org/ops/oauth2callback"},
            "redirect_uri: is not a URL; expected https://host/...",
            id="no scheme",
        ),
        pytest.param(
            {"redirect_uri": "http://page.example.org/ops/oauth2callback"},
            "redirect_uri: must be https, because credentials are sent to it; http is for loopback only",
            id="a page without TLS",
        ),
        pytest.param(
            {"redirect_uri": "https://page.example.org/ops/"},
            "redirect_uri: must end in /oauth2callback, the callback path of the dashboard",
            id="back to elsewhere",
        ),
        pytest.param(
            {"redirect_uri": "https://page.example.org/oauth2callback"},
            "redirect_uri: its path must be /ops/oauth2callback, because the dashboard is served below /ops; "
            "change it here and at the provider, or change --base-path",
            id="another base path",
        ),
        pytest.param(
            {"scope": "email"},
            "scope: must contain openid; without it the provider does not identify people",
            id="no OpenID",
        ),
        pytest.param(
            {"session": "soon"}, "session: 'soon' is not a duration, write 30s, 5m, 1h or 200ms", id="no time"
        ),
        pytest.param(
            {"session": "60d"},
            "session: must be more than 0 and at most 30d, the lifetime of the cookie",
            id="longer than the cookie lives",
        ),
        pytest.param(
            {"allow": "{}"},
            "allow: nobody has access; give emails, domains or claims, such as emails: [ann@example.org]",
            id="nobody",
        ),
        pytest.param(
            {"allow": "{claims: {groups: []}}"},
            "allow: nobody has access; give emails, domains or claims, such as emails: [ann@example.org]",
            id="no group",
        ),
        pytest.param(
            {"allow": "{emails: [example.org]}"},
            "allow.emails: 'example.org' is not an e-mail address; to allow everybody of a company, use domains",
            id="no address",
        ),
        pytest.param(
            {"allow": "{domains: ['*.example.org']}"},
            "allow.domains: '*.example.org' is not a domain; give the part after the @, such as example.org",
            id="a pattern",
        ),
        pytest.param(
            {"allow": "{domain: [example.org]}"},
            "allow.domain: unknown key, did you mean 'domains'?",
            id="a word wrong",
        ),
    ],
)
def test_errors_in_the_file(
    changes: dict[str, str | None], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """File, key, what to do instead; exit code 3, nothing started, never a secret."""
    path = written(folder, **changes)
    options = ["--exporter", "http://127.0.0.1:9419", "--rollups", str(folder), "--base-path", "/ops"]
    code = main(["dashboard", *options, "--login", str(path)])
    reported = capsys.readouterr().err

    assert (3, f"ackscope dashboard: {path}: {said}\n") == (code, reported)
    assert SECRET not in reported


def test_a_file_that_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its name, and that it must exist."""
    path = folder / "none.yml"
    options = ["--exporter", "http://127.0.0.1:9419", "--rollups", str(folder)]

    assert 3 == main(["dashboard", *options, "--login", str(path)])
    assert f"ackscope dashboard: {path}: cannot be read (No such file or directory); give an existing file\n" == (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("client", None, "client_secret_file: {} cannot be read (No such file or directory); check its path and owner"),
        ("client", b"", "client_secret_file: {} is empty; write the secret on its first line"),
        ("client", b"  \n", "client_secret_file: {} is empty; write the secret on its first line"),
        ("client", b"\xff\xfe", "client_secret_file: {} is not a text file; write the secret on its first line"),
        (
            "cookie",
            b"short\n",
            "cookie_secret_file: {} has fewer than 32 characters; delete it, and a new one is created",
        ),
        (
            "none/cookie",
            None,
            (
                "cookie_secret_file: {} cannot be created (no such file or directory); "
                "choose a folder that this user can write to"
            ),
        ),
    ],
)
def test_errors_in_a_secret_file(
    name: str, content: bytes | None, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is named, its content is not printed."""
    secret = folder / name
    if content is not None:
        secret.write_bytes(content)
        secret.chmod(0o600)
    elif secret.exists():
        secret.unlink()
    path = written(folder, **({} if name == "client" else {"cookie_secret_file": name}))
    options = ["--exporter", "http://127.0.0.1:9419", "--rollups", str(folder), "--base-path", "ops"]

    assert 3 == main(["dashboard", *options, "--login", str(path)])
    assert f"ackscope dashboard: {path}: {said.format(secret)}\n" == capsys.readouterr().err


def test_secrets_are_read_and_never_printed(folder: Path) -> None:
    """They are where Streamlit expects them, and nowhere else."""
    login = read(written(folder, allow="{emails: [Ann@Example.org], claims: {groups: [oncall]}}"), "ops")
    settings = PageSettings("http://127.0.0.1:9419", folder, login=login.rules)

    assert SECRET == login.secrets()["auth"]["client_secret"]
    assert login.cookie_secret == login.secrets()["auth"]["cookie_secret"]
    assert ("ann@example.org",) == login.rules.emails
    assert 12 * 3600 == login.rules.session
    for text in (repr(login), str(settings.to_environ())):
        assert SECRET not in text
        assert login.cookie_secret not in text
    assert settings == PageSettings.from_environ(settings.to_environ())


def test_the_cookie_secret_is_created_once(folder: Path) -> None:
    """For its owner only; the next start finds it, so that people stay signed in."""
    path = written(folder, cookie_secret_file="cookie")
    first = read(path, "ops").cookie_secret

    assert 0o600 == (folder / "cookie").stat().st_mode & 0o777
    assert 64 == len(first)
    assert first == read(path, "ops").cookie_secret


def test_without_a_file_each_start_has_a_new_secret(folder: Path) -> None:
    """Nothing is written, and everybody signs in again."""
    path = written(folder)

    assert read(path, "ops").cookie_secret != read(path, "ops").cookie_secret
    assert {"client", "login.yml"} == {it.name for it in folder.iterdir()}


def test_a_world_readable_secret_is_logged(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once, with what to do."""
    (folder / "client").chmod(0o644)
    path = written(folder)
    with caplog.at_level(logging.WARNING):
        read(path, "ops")

    [record] = caplog.records

    assert "every user of this machine can read this secret; run chmod o-r on the file" == record.msg["event"]
    assert str(folder / "client") == record.msg["file"]


@pytest.mark.parametrize(
    ("host", "only_here"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.1.2.3", False),
        ("page.example.org", False),
    ],
)
def test_loopback_addresses(host: str, only_here: bool) -> None:  # noqa: FBT001
    """Only this machine can reach them."""
    assert only_here == is_loopback(host)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], f'msg="{OPEN}" listen={{}} writable=nothing\n'),
        (["--notes", "notes"], f'msg="{OPEN}" listen={{}} writable=notes\n'),
        (["--login", "login.yml"], ""),
    ],
)
def test_an_open_dashboard_is_logged(
    options: list[str], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line in the log if other machines can reach it."""
    monkeypatch.setattr("dashboard.server.serve", lambda *_args: None)
    monkeypatch.setattr("dashboard.command.os.environ", {})
    monkeypatch.chdir(folder)
    written(folder)
    listen = f"0.0.0.0:{free_port()}"
    reported = ["--exporter", "http://127.0.0.1:9419", "--rollups", str(folder), "--base-path", "ops"]

    assert 0 == main(["dashboard", *reported, "--listen", listen, *options])
    assert said.format(listen) == capsys.readouterr().err.partition("logger=dashboard.command ")[2]


def test_the_example_of_the_documentation_is_valid(folder: Path) -> None:
    """As it is printed there."""
    text = (Path(__file__).parents[2] / "docs" / "dashboard.md").read_text()
    [printed] = re.findall(r"```yaml\n(metadata_url.*?)```", text, re.DOTALL)
    (folder / "login.yml").write_text(printed)
    (folder / "client").rename(folder / "client-secret")

    assert ("watch",) == read(folder / "login.yml", "ops/ackscope").rules.claims["realm_access.roles"]
