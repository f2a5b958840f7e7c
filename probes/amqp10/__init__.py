"""Probes that speak AMQP 1.0, and the connection that they use."""
