"""What rules about queues share."""
