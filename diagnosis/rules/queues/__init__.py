"""Rules about queues by themselves (C)."""
