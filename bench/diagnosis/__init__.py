"""What diagnosis is worth: faults and decoys on real brokers, and what it says of them."""
