"""Measurements of the page: what a viewer waits for, what the server spends, beside RabbitMQ's own page."""
