"""The AMQP client side of the exporter: the probe process, its metrics, and on-demand probes."""
