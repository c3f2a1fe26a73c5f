"""One file per data set (or family); each lists its `SOURCES`. Position here is the
registration.
"""
