"""Synthetic clients that measure a broker: one probe per file, each with its own measurement error.

The package does not use Prometheus, files or HTTP.
"""
