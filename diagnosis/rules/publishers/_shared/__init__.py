"""What rules about publishers share."""
