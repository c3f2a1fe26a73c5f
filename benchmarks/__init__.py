"""From a command to a table: the command line and the runner."""
