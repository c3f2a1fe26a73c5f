"""Speed benchmarks, for pytest-benchmark."""
