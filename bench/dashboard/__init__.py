"""Benchmarks of the dashboard: response times, CPU time of the server, and a comparison with RabbitMQ's own UI."""
