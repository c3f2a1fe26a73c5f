"""Clients and what they hold, the server's data, and the networks that both train."""
