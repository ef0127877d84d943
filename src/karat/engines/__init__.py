"""Where scoring runs; an engine opens the sources, partitions them if it can, and scores."""
