"""An .npz of a few images, as Keras names its arrays."""

import numpy as np


def write_npz(home, name, side, train=3, channels=None, value=0):
    home.mkdir(exist_ok=True)
    shape = (side, side) if channels is None else (side, side, channels)
    images = np.full((train, *shape), value, np.uint8)
    np.savez(
        home / f"{name}.npz",
        x_train=images,
        y_train=np.zeros(train, int),
        x_test=images[:1],
        y_test=np.zeros(1, int),
    )
