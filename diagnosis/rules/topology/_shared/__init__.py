"""What rules about topology share."""
