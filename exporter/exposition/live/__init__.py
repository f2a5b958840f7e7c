"""Metrics of ackscope itself and of its probes, evaluated at every scrape or once a second."""
