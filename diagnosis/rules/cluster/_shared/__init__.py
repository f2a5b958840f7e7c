"""What rules about the cluster share."""
