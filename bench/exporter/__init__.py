"""Benchmarks of the exporter: peers, limits, growth, a hung node, and an hour of queue churn."""
