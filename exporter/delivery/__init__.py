"""Delivery of findings to people: Alertmanager, webhooks, and through Apprise to chat, mail and pagers."""
