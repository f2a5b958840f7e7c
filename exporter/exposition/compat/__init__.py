"""Metric names of kbudde/rabbitmq_exporter, for users who migrate from it.

`exporter.exposition.compat.select.collectors_for` returns the collectors for a setting.
"""
