"""What the score table says over queries."""
