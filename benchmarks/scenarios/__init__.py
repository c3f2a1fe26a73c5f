"""From a resolved configuration to a federation: one file a scenario."""
