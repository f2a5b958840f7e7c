"""What rules about nodes share."""
