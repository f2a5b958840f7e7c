"""Metrics of ackscope itself and of its probes, made anew at every scrape: they hold ages, which grow meanwhile."""
