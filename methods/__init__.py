"""The methods of the four papers, one file each. Position is registration."""
