"""Reconstruction attacks as commands: on messages, and on answers."""
