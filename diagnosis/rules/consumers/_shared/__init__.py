"""What rules about consumers share."""
