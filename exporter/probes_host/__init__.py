"""The side that acts on brokers as a client: the probe process, its metrics, probes on demand."""
