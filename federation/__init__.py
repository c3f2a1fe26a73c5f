"""What methods are written with: clients, a channel, loops, seeds, a stage cache."""
