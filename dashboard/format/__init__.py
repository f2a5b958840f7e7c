"""Text for people: numbers, times, labels, escaped foreign names. Pure."""
