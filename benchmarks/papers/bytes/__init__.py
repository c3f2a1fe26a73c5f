"""The bytes of each paper's tables that have no runner, from first principles."""
