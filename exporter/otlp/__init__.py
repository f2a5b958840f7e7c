"""OTLP: sends the metrics of `/metrics` to an OpenTelemetry collector."""
