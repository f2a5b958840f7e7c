import socket

import pytest

from ackscope.__main__ import main
from ackscope.snapshot import Part
from exporter.runtime.snapshot_relay import fill_missing
from tests.unit.exporter.broker.server import json, serve
from tests.unit.exporter.made import small


def test_what_only_the_first_look_read_is_respected_with_the_error():
    """Its age shows that it is older; newer parts come from the second reading."""
    first, again = small(health=Part(error="404")), small(queues=Part(error="timed out"))
    both = fill_missing(first, again)

    assert (first.queues.value, first.queues.at, "timed out") == (
        both.queues.value,
        both.queues.at,
        both.queues.error,
    )
    assert again.health == both.health
    assert again.nodes is both.nodes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--management", "amqp://u:hush@host"],
            (
                "ackscope diagnose: --management: scheme 'amqp', expected http or https, "
                "as in http://user:password@host:15672\n"
            ),
        ),
        (
            ["--management", "http://host", "--amqp", "http://host"],
            "ackscope diagnose: --amqp: scheme 'http', expected amqp or amqps, as in amqp://user:password@host:5672\n",
        ),
        (
            ["--management", "http://host", "--within", "2s"],
            "ackscope diagnose: --within: must be 8s to 5m, because two snapshots are taken 6 to 10 s apart\n",
        ),
        (
            ["--management", "http://host", "--within", "soon"],
            (
                "ackscope diagnose: argument --within: 'soon' is not a duration, write 30s, 5m, 1h or 200ms; "
                "see: ackscope diagnose --help\n"
            ),
        ),
    ],
)
def test_a_mistake_is_reported_in_one_line(capsys, words, message):
    """Exit code 3: a typing error is never a verdict."""
    try:
        code = main(["diagnose", *words])
    except SystemExit as ended:
        code = ended.code
    reported = capsys.readouterr()

    assert (3, "", message) == (code, reported.out, reported.err)


def test_a_broker_that_is_away_is_reported_in_one_line(capsys):
    """No traceback, no verdict, no password."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code = main(["diagnose", "--management", f"http://u:hush@127.0.0.1:{port}"])
    reported = capsys.readouterr()

    assert (3, "") == (code, reported.out)
    assert reported.err.startswith(f"ackscope diagnose: 127.0.0.1:{port}/api/overview: connection refused; ")
    assert reported.err.count("\n") == 1
    assert "hush" not in reported.err


def test_a_wrong_password_is_reported_in_one_line(capsys):
    """The user's name helps, the password does not show."""
    refusal = json({"error": "not_authorised", "reason": "Login failed"}, 401)
    paths = ("overview", "nodes", "queues", "channels", "consumers", "connections")
    with serve({f"/api/{name}": refusal for name in paths}) as server:
        code = main(["diagnose", "--management", server.url])
    reported = capsys.readouterr()

    assert (3, "", 1) == (code, reported.out, reported.err.count("\n"))
    assert "401" in reported.err
    assert "s3cret" not in reported.err


def test_the_help_explains_the_exit_code(capsys):
    """A script that runs it needs no other page."""
    with pytest.raises(SystemExit):
        main(["diagnose", "--help"])
    shown = " ".join(capsys.readouterr().out.split())

    assert "exit code: 2 critical finding, 1 warning, 3 neither but something could not be read or judged" in shown
