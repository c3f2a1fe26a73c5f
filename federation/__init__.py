"""What every method is written with: clients, a channel that counts bytes, training loops, seeds, a
stage cache.
"""
