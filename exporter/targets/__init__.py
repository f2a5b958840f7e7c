"""On-demand reads of brokers that the scraper names: `/probe?module=NAME&target=HOST:PORT`."""
