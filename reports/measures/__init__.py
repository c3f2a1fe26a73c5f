"""How each measure is shown: the same names as the measures."""
