"""A private, real RabbitMQ with a workload and faults, for demo, tests and benchmarks.

Never needed in production.
"""
