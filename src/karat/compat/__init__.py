"""Drop-in replacements for other tools, with the same names and the same values."""
