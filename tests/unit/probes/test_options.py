import argparse

import pytest

from ackscope.errors import UsageError
from probes.catalogue import PROBES
from probes.command import add_arguments
from probes.options import refuse_useless, settings_of
from probes.prefetch_report import values


def given(*words):
    """Return the parsed command line."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([*words, "--amqp", "amqp://h"])


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_has_settings_without_any_option(name):
    """And only that probe is enabled."""
    args = given(name)
    refuse_useless(args)

    assert (name,) == settings_of(args).enabled


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            ("rtt", "--rate", "3"),
            "--rate: does not apply to the rtt probe (only to confirm, delivery, settle, streaming, nack, reject)",
        ),
        (("handshake", "--queue-type", "quorum"), "--queue-type: does not apply to the handshake probe (only to"),
        (("confirm", "--every", "1s"), "--every: does not apply to the confirm probe"),
        (("confirm", "--stream-port", "1"), "--stream-port: does not apply to the confirm probe (only to streaming)"),
        (("delivery", "--prefetch", "1"), "--prefetch: does not apply to the delivery probe (only to prefetch)"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(words, reported):
    """One line that says which probes it is for."""
    with pytest.raises(UsageError) as caught:
        refuse_useless(given(*words))

    assert reported in str(caught.value)


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("confirm", "--rate", "9000"), "--rate: input should be less than or equal to 5000"),
        (("nack", "--payload", "3"), "--payload: input should be greater than or equal to 32"),
        (("rtt", "--every", "1ms"), "--every: input should be greater than or equal to 0.01"),
    ],
)
def test_a_value_out_of_bounds_names_its_option(words, reported):
    """The message does not name the key of the settings."""
    with pytest.raises(UsageError) as caught:
        settings_of(given(*words))

    assert str(caught.value) == reported


def test_options_reach_the_settings():
    """Each option sets its own key."""
    redelivery = settings_of(given("redelivery", "--queue-type", "quorum"))
    assert ("quorum",) == redelivery.of(PROBES["redelivery"]).queue_types
    assert 0.2 == settings_of(given("rtt", "--every", "200ms")).of(PROBES["rtt"]).interval
    assert ("stream",) == settings_of(given("confirm", "--stream", "stream")).of(PROBES["confirm"]).streams


def test_prefetch_values_are_read():
    """Numbers and `unlimited`, each once."""
    assert (1, 10, 0) == values("1, 10,unlimited,10")


@pytest.mark.parametrize("text", ["", "0", "-1", "x", "1,,2", "70000", "1.5"])
def test_wrong_prefetch_values_are_refused(text):
    """The message has a valid example."""
    with pytest.raises(UsageError, match="use 1,10,100,unlimited"):
        values(text)
