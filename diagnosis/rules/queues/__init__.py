"""Rules about queues (C)."""
