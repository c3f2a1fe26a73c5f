"""Caltech-101 at 32 x 32 pixels, its 100 object classes, as one `caltech100_32.npz`: real images in
CIFAR-100's place.

Classes are uneven (31 to 800 images). There is no official version of this size, hence no official
digest of content.
"""

from __future__ import annotations

from datasets.folders import one_file
from datasets.source import DataSource, read_npz

_HOW = (
    "Unpack the official Caltech-101 (https://doi.org/10.22002/D1.20086), leave out"
    " BACKGROUND_Google and Faces_easy, which leaves 100 object classes, resize the centre square"
    " of each of the 8,242 images to 32x32, and save two thirds as x_train, y_train (5,494) and the"
    " rest as x_test, y_test (2,748) in caltech100_32.npz in the data home, with labels 0 to 99 in"
    " alphabetical order of the classes."
)


_files = one_file("caltech100_32.npz")

SOURCES = [
    DataSource(
        name="caltech100",
        title="Caltech-101, 100 classes",
        classes=100,
        shape=(3, 32, 32),
        sizes={"train": 5494, "test": 2748},
        mean=(0.5390, 0.5183, 0.4904),
        std=(0.2926, 0.2876, 0.3013),
        licence=(
            "CC BY 4.0; cite Li, Andreeto, Ranzato, Perona: Caltech 101, CaltechDATA 2022, and"
            " Fei-Fei, Fergus, Perona, 2004"
        ),
        how_to_get=_HOW,
        files=_files,
        load=lambda home: read_npz(_files(home)[0], _HOW),
        stand_ins=("shapes-100",),
        note="100 uneven object classes of Caltech-101 at 32 x 32 pixels",
    )
]
