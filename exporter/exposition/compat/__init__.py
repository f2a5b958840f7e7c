"""The names of the ended exporter (github.com/kbudde/rabbitmq_exporter), for those who come from it.

`exporter.exposition.compat.select.collectors_for` gives the collectors of a setting.
"""
