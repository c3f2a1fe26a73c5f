"""One file per network family; each lists its `NETWORKS`. Position here is the registration."""
