"""Rules about nodes together: replication, partitions, links (E)."""
