"""What counts as found: gold and run brought together into hits."""
