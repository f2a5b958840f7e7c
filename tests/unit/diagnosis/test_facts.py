"""What findings call a client."""

import pytest

from ackscope.snapshot import Connection
from diagnosis.facts import client_name

NAME = "10.0.0.7:50222 -> 10.0.0.9:5672"


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"client_name": "billing", "user": "shop", "peer_host": "10.0.0.7"}, "billing"),
        ({"client_product": "RabbitMQ", "user": "shop", "peer_host": "10.0.0.7"}, "shop@10.0.0.7"),
        ({"client_product": "RabbitMQ", "user": "shop"}, NAME),
        ({"peer_host": "10.0.0.7"}, NAME),
    ],
)
def test_a_client_without_a_name_is_called_by_user_and_host(known, expected):
    """The library would name every application in its language."""
    assert expected == client_name(Connection(name=NAME, **known))


def test_an_unknown_connection_has_the_default():
    """Nothing is made up."""
    assert ("there", None) == (client_name(None, "there"), client_name(None))
