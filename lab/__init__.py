"""A private RabbitMQ with a sample workload and fault injection, for demo, tests and benchmarks.

Never needed in production.
"""
