"""Readings of brokers that a scraper names, one at a time: `/probe?module=NAME&target=HOST:PORT`."""
