"""Steps as CUDA graphs, and several trainings beside each other."""
