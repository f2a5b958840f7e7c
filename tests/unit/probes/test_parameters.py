from ackscope.address import parse_amqp
from probes.parameters import parameters
from probes.settings import AmqpServer
from probes.verify.relay import Relay


def test_behind_a_relay_the_certificate_is_still_the_brokers():
    """The connection goes to loopback; the name that is checked is not that of loopback."""
    broker = AmqpServer(parse_amqp("amqps://broker.example"))
    relay = Relay("broker.example", 5671)
    relay.port = 4711
    wanted = parameters(relay.through(broker), "test", 1.0)

    assert ("127.0.0.1", 4711) == (wanted.host, wanted.port)
    assert "broker.example" == wanted.ssl_options.server_hostname
    assert "broker.example" == parameters(broker, "test", 1.0).ssl_options.server_hostname
