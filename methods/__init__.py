"""The methods of the papers, one file or package each. Position is registration."""
