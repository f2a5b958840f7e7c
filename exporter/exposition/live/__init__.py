"""Metrics of ackscope itself and of its probes, computed at every scrape or once a second."""
