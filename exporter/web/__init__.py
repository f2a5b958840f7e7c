"""The port that the exporter listens on: connections and their limits, TLS, who may ask."""
