"""What rules about probes share."""
