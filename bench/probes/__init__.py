"""Benchmarks of the probes: accuracy, maximum rate, cost, and faults of the broker and of the probe process."""
