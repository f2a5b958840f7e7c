"""Benchmarks of diagnosis: findings for injected faults and for decoys on real brokers."""
