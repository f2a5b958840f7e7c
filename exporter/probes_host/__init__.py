"""The AMQP client side: the probe process, its metrics, and on-demand probes."""
