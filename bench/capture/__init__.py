"""Reading confirms off the wire: packets to byte streams to AMQP frames to the time each message was settled."""
