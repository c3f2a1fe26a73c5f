"""The bytes of papers' tables from first principles."""
