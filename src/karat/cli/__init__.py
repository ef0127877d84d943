"""The command line: one file per command; each parses its options, calls karat and prints."""
