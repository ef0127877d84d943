"""karat and its peers on the same generated work: times, peak memory, ratios, equal values."""
