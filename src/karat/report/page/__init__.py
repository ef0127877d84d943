"""The HTML report: one file that a person opens."""
