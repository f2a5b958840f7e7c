"""The names of the ended exporter (github.com/kbudde/rabbitmq_exporter), for those who come from it.

`exporter.compat.chosen.collectors_for` gives the collectors of a setting.
"""
