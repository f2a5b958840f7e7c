"""The exporter: polls brokers, keeps the latest state in memory, serves it over HTTP.

`app` wires the parts together. Nothing here decides what is wrong: `diagnosis` does.
"""
