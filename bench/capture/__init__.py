"""Confirm latency from captured packets: packets, byte streams, AMQP frames, settlement times."""
