"""Benchmarks of the pipeline: generated history, throughput, scale, incidents, kills, freshness, compaction."""
