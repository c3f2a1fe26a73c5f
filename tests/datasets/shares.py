"""Labels to cut up, and whether the parts are all of them."""

import numpy as np


def rng(seed=0):
    return np.random.default_rng(seed)


def balanced(samples, classes=10):
    return np.arange(samples) % classes


def assert_a_partition(parts, samples):
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(samples))
