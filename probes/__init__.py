"""Synthetic clients that measure a broker: one probe per file, each with its own measurement error.

Knows no Prometheus, files or HTTP.
"""
