"""From a configuration to a federation: a file for each scenario, and what they have in common."""
