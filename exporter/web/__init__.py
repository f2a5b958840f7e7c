"""The exporter's HTTP port: connections and their limits, TLS, authentication."""
