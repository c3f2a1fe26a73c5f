"""Cell17: both layouts, images of several sizes."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from datasets.sources import cell17
from datasets.sources.cell17 import COUNT
from tests.datasets.promises import OF_FOLDERS, promised

SOURCE = cell17.SOURCES[0]
SIDE = 6


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cell17, "SIDES", (SIDE, SIDE))


def write(home, texts=False):
    """Every third image is smaller; object 5 of each lies in its last pixel."""
    for split in ("train", "test"):
        folder = home / "cpm17" / split
        images, labels = (folder, folder) if texts else (folder / "Images", folder / "Labels")
        images.mkdir(parents=True)
        labels.mkdir(exist_ok=True)
        for number in range(COUNT):
            side = SIDE - 1 if number % 3 == 0 else SIDE
            objects = np.zeros((side, side), int)
            objects[0, 1], objects[-1, -1] = 2, 5
            pixels = np.full((side, side, 3), number, np.uint8)
            name = f"image{number:02}" if texts else f"image_{number:02}"
            Image.fromarray(pixels).save(images / f"{name}.png")
            if texts:
                Image.fromarray(pixels).save(images / f"{name}_poly.png")
                text = f"{side} {side}\n" + "\n".join(map(str, objects.reshape(-1)))
                (labels / f"{name}_mask.txt").write_text(text)
            else:
                savemat(labels / f"{name}.mat", {"inst_map": objects.astype(float)})
    return home / "cpm17"


@pytest.mark.parametrize("texts", [False, True])
def test_both_layouts_are_read_alike_and_filled_up(tmp_path, texts):
    write(tmp_path, texts)
    assert len(SOURCE.files(tmp_path)) == 128
    splits = SOURCE.load(tmp_path)
    for split in splits.values():
        assert split.images.shape == (COUNT, 3, SIDE, SIDE)
        assert split.images[:, 0, 0, 0].tolist() == [*range(COUNT)]
        assert (split.images[0, :, -1] == 255).all()
        assert (split.images[0, :, :, -1] == 255).all()
        nuclei = split.annotations["nuclei"]
        assert np.argwhere(nuclei[0]).tolist() == [[0, 1], [4, 4]]
        assert np.argwhere(nuclei[1] == 2).tolist() == [[5, 5]]
        assert nuclei.max() == 2
    assert len({*splits["train"].groups, *splits["test"].groups}) == 64


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, write)])
