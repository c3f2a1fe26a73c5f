"""How a measure is told and drawn: the same names as the measures."""
