import pytest

from ackscope.__main__ import main
from ackscope.errors import BrokerError, UsageError
from lab.verify.command import chosen, version


def test_some_claims_can_be_chosen():
    """In their own order, however they are written."""
    assert ["S06", "S16", "A02"] == [claim.id for claim in chosen("a02, s16, S06,")]
    assert 53 + 25 == len(chosen(None))


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ("S6", "--only: unknown claim 'S6', did you mean 'S"),
        ("S99", "; there are S01 to S53 and A01 to A25"),
        (",", "--only: empty; use for example --only S06,S16"),
    ],
)
def test_a_claim_that_does_not_exist(only, message):
    """The message names the nearest, and which there are."""
    with pytest.raises(UsageError) as caught:
        chosen(only)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--amqp", "amqp://h", "--nodes", "3"], "--broker and --nodes: only with --lab, which starts that broker"),
        (["--lab", "--no-verify"], "--lab starts its own broker; omit"),
        (["--amqp", "http://h"], "--amqp: scheme 'http', expected amqp or amqps"),
        (["--amqp", "amqp://h", "--ca-file", "x"], "--ca-file and --no-verify: only for TLS"),
        (["--amqp", "amqp://h", "--prefix", "a b"], "--prefix: invalid 'a b'; use letters"),
        (["--lab", "--broker", "9"], "unknown broker '9'"),
        (["--amqp", "amqp://u:secret@127.0.0.1:1"], "127.0.0.1:1: "),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_3(words, line, capsys):
    """The line contains no credentials."""
    code = main(["verify", *words])
    shown = capsys.readouterr().err

    assert (3, 1) == (code, shown.count("\n"))
    assert shown.startswith(f"ackscope verify: {line}")
    assert "secret" not in shown


def test_a_broker_or_a_lab_must_be_named(capsys):
    """Never a default: nothing is checked on a broker that was not meant."""
    with pytest.raises(SystemExit) as caught:
        main(["verify"])

    assert 3 == caught.value.code
    assert "one of the arguments --amqp --lab is required" in capsys.readouterr().err


def test_the_version_is_the_brokers_own_word():
    """Other products are refused."""
    assert (4, 3, 6) == version("RabbitMQ 4.3.6")
    assert (4, 4, 0) == version("RabbitMQ 4.4.0-rc.1")
    with pytest.raises(BrokerError, match=r"reports 'LavinMQ 2\.1\.0'"):
        version("LavinMQ 2.1.0")
