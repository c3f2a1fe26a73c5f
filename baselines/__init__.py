"""The comparators that the papers print, one file each. Position is registration."""
