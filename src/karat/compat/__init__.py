"""Other tools' ways in: the same names and digits, so that putting karat in their place is easy."""
