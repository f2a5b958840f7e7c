"""Titles of the guides that the claims come from."""

CONFIRMS = "Consumer Acknowledgements and Publisher Confirms"
RELIABILITY = "Reliability Guide"
SEMANTICS = "Broker Semantics (4.1)"
TRANSLATION = "an older commented translation of the confirms guide"

AMQP10 = "AMQP 1.0"
FLOW = "Ten Benefits of AMQP 1.0 Flow Control"
MODIFIED = "AMQP 1.0 Modified Outcome"
QUORUM = "Quorum Queues"
DEAD_LETTERS = "Dead Letter Exchanges"
OASIS = "OASIS AMQP 1.0"
