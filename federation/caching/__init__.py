"""Results on disk: stages that are computed once, snapshots of a fit."""
