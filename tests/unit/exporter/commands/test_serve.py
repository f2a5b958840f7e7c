import socket

import pytest

from ackscope.__main__ import main

GOOD = """
listen: {listen}
clusters:
  shop:
    management: {{url: "http://u:hush@127.0.0.1:1"}}
    amqp: {{url: "amqp://u:hush@127.0.0.1:1"}}
  depot:
    management: {{url: "http://u:hush@127.0.0.1:1"}}
{more}
"""


def written(folder, listen="127.0.0.1:9419", more=""):
    """The path of a file of this content."""
    path = folder / "ackscope.yml"
    path.write_text(GOOD.format(listen=listen, more=more))
    return str(path)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "valid; listens on 127.0.0.1:9419; monitors shop, depot; probes shop; no landing files\n"),
        ("landing: {directory: /data}", "monitors shop, depot; probes shop; landing files in /data\n"),
        ("probes: {enabled: []}", "monitors shop, depot; no probes; no landing files\n"),
        (
            "modules: {prod: {targets: [a:1]}}",
            "monitors shop, depot; on-demand modules prod; probes shop; no landing files\n",
        ),
    ],
)
def test_a_valid_file_is_summarised(tmp_path, capsys, more, message):
    """In one line, without passwords."""
    path = written(tmp_path, more=more)
    code = main(["exporter", "--config", path, "--check-config"])
    reported = capsys.readouterr()

    assert (0, "") == (code, reported.err)
    assert reported.out.startswith(f"{path}: valid; ")
    assert reported.out.endswith(message)
    assert "hush" not in reported.out


@pytest.mark.parametrize("more", [["--check-config"], []])
def test_a_wrong_file_is_reported_in_one_line(tmp_path, capsys, more):
    """Checked or served, nothing starts."""
    path = written(tmp_path, more="pol: {}")
    code = main(["exporter", "--config", path, *more])
    reported = capsys.readouterr()

    expected = f"ackscope exporter: {path}: pol: unknown key, did you mean 'poll'?\n"

    assert (3, "", expected) == (code, reported.out, reported.err)


@pytest.mark.parametrize("option", ["--config", "--config.file"])
@pytest.mark.parametrize(
    ("address", "expected"), [("127.0.0.1:0", "127.0.0.1:0"), (":9500", "0.0.0.0:9500"), ("[::1]:9500", "[::1]:9500")]
)
def test_the_listen_address_can_be_set_on_the_command_line(tmp_path, capsys, monkeypatch, option, address, expected):
    """It overrides the file and the environment; both spellings of the file's option work."""
    monkeypatch.setenv("ACKSCOPE_LISTEN", "127.0.0.1:9501")
    code = main(["exporter", option, written(tmp_path), "--web.listen-address", address, "--check-config"])

    assert 0 == code
    assert f"; listens on {expected}; " in capsys.readouterr().out


def test_a_malformed_listen_address_is_an_error(tmp_path, capsys):
    """In one line that shows the right form."""
    code = main(["exporter", "--config.file", written(tmp_path), "--web.listen-address", "9419"])

    expected = (
        "ackscope exporter: ACKSCOPE_LISTEN: listen: invalid listen address '9419'; "
        "use host:port, such as 127.0.0.1:9419, or 0.0.0.0:9419 for all interfaces\n"
    )

    assert (3, expected) == (code, capsys.readouterr().err)


def test_the_web_configuration_may_be_named_on_the_command_line(tmp_path, capsys):
    """It is checked with the rest, and wins over the key in the file."""
    code = main(
        ["exporter", "--config", written(tmp_path), "--check-config", "--web.config.file", f"{tmp_path}/no.yml"]
    )
    reported = capsys.readouterr()

    expected = (
        f"ackscope exporter: ACKSCOPE_WEB_CONFIG: web_config: {tmp_path}/no.yml: "
        "cannot be read (No such file or directory); give an existing file\n"
    )

    assert (3, "", expected) == (code, reported.out, reported.err)


def test_a_file_that_is_missing_is_reported_in_one_line(tmp_path, capsys):
    """With its name."""
    code = main(["exporter", "--config", f"{tmp_path}/no.yml"])

    expected = (
        f"ackscope exporter: {tmp_path}/no.yml: cannot be read (No such file or directory); give an existing file\n"
    )

    assert (3, expected) == (code, capsys.readouterr().err)


def test_a_port_in_use_is_reported_in_one_line(tmp_path, capsys):
    """And nothing was started: no probe process, no poller."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        code = main(["exporter", "--config", written(tmp_path, listen)])

    expected = (
        f"ackscope exporter: listen: {listen} is already in use; "
        "choose another port in `listen`, or stop the other process\n"
    )

    assert (3, expected) == (code, capsys.readouterr().err)
