"""The command line, one file per command. A command parses options, calls karat and prints."""
