"""Cell17: both layouts, images of several sizes."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fedtables.datasets.source import DataError
from fedtables.datasets.sources import cell17
from fedtables.datasets.sources.cell17 import COUNT, GROUP, of_test, touching
from tests.datasets.promises import OF_FOLDERS, promised

SOURCE, DSB = cell17.SOURCES
SIDE = 6
DSB_SIDES = (8, 10)


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


# -- DSB 2018 --


@pytest.fixture(autouse=True)
def small_dsb(monkeypatch):
    monkeypatch.setattr(cell17, "DSB_SIDES", DSB_SIDES)
    monkeypatch.setattr(cell17, "DSB_COUNT", 6)
    monkeypatch.setattr(cell17, "TESTED", 2)


def smooth(seed, sides):
    """A picture (3, *sides) whose neighbours differ by 3 at most and whose far pixels do not."""
    height, width = sides
    rows, columns = np.indices(sides)
    start = 20 + 40 * seed
    return np.stack([start + 3 * rows + 2 * columns] * 3).astype(np.uint8)[:, :height, :width]


def quarters(picture):
    _, height, width = picture.shape
    return [
        picture[:, row : row + height // 2, column : column + width // 2]
        for row in (0, height // 2)
        for column in (0, width // 2)
    ]


def tiles():
    """Four quarters of one picture, and two others."""
    large = smooth(0, (2 * DSB_SIDES[0], 2 * DSB_SIDES[1]))
    return np.stack([*quarters(large), 250 - smooth(1, DSB_SIDES), smooth(3, DSB_SIDES)])


def write_dsb(home, images=None):
    folder = home / "nuclei_dsb2018"
    lines = ["id,full_id,group,height,width,n_nuclei"]
    for name in ("images", "labels"):
        (folder / name).mkdir(parents=True)
    for number, pixels in enumerate(tiles() if images is None else images):
        lines.append(f"{number:03},x,{GROUP},8,10,1")
        Image.fromarray(pixels.transpose(1, 2, 0)).save(folder / "images" / f"{number:03}.png")
        objects = np.zeros(DSB_SIDES, np.uint16)
        objects[:3] = 6
        Image.fromarray(objects).save(folder / "labels" / f"{number:03}.png")
    lines.append("zzz,x,fluo_256x256,256,256,1")
    (folder / "index.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_quarters_of_one_picture_belong_together_in_any_order():
    assert touching(tiles()).tolist() == [0, 0, 0, 0, 4, 5]
    order = [4, 3, 0, 5, 1, 2]
    assert touching(tiles()[order]).tolist() == [0, 1, 1, 3, 1, 1]


def test_a_group_is_tested_as_a_whole_and_enough_are(monkeypatch):
    monkeypatch.setattr(cell17, "TESTED", 5)
    names, groups = [*"abcdefgh"], np.array([0, 0, 0, 3, 3, 5, 6, 6])
    tested = of_test(names, groups)
    assert 5 <= tested.sum() <= 7
    assert set(groups[tested]).isdisjoint(groups[~tested])
    mixed = [7, 0, 3, 4, 1, 6, 2, 5]
    assert of_test([names[i] for i in mixed], groups[mixed]).tolist() == tested[mixed].tolist()


def test_only_the_stained_group_is_read_and_groups_stay_together(tmp_path):
    write_dsb(tmp_path)
    assert len(DSB.files(tmp_path)) == 13
    splits = DSB.load(tmp_path)
    assert sum(len(split) for split in splits.values()) == 6
    assert set(splits["train"].groups).isdisjoint(splits["test"].groups)
    assert len(splits["test"]) >= 2
    assert all((split.annotations["nuclei"][:, :3] == 1).all() for split in splits.values())


def test_another_number_of_images_is_refused(tmp_path):
    write_dsb(tmp_path, tiles()[:5])
    with pytest.raises(DataError, match="has 5 images of the group stain_colour_256x320, not 6"):
        DSB.files(tmp_path)


test_what_every_reader_promises = promised(OF_FOLDERS, [(SOURCE, write), (DSB, write_dsb)])
