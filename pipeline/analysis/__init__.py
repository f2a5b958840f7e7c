"""What the rollups tell beyond numbers: what is usual, what shifted, how long each finding lasted."""
