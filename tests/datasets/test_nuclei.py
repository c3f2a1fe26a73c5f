"""Instance maps in the forms that sets come in, and folders of images with them."""

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from datasets.nuclei import (
    indexed,
    numbered,
    pairs_of,
    read_all,
    read_index,
    read_objects,
    read_outlines,
    read_rgb,
    separated,
)
from datasets.source import DataError

MAP = np.array([[0, 7, 7], [0, 0, 300]])
NUMBERED = [[0, 1, 1], [0, 0, 2]]


def outlines(*polygons):
    """The text of an ImageScope file with regions of these vertices, x and y."""
    regions = "".join(
        f'<Region Id="{number}" Type="0"><Attributes/><Vertices>'
        + "".join(f'<Vertex X="{x}" Y="{y}" Z="0"/>' for x, y in polygon)
        + "</Vertices></Region>"
        for number, polygon in enumerate(polygons, 1)
    )
    return (
        '<Annotations MicronsPerPixel="0.252"><Annotation Id="1"><Attributes/><Regions>'
        f"<RegionAttributeHeaders/>{regions}</Regions><Plots/></Annotation></Annotations>"
    )


@pytest.fixture
def xml(tmp_path):
    def write(*polygons):
        path = tmp_path / "slide.xml"
        path.write_text(outlines(*polygons))
        return path

    return write


# -- numbers --


def test_objects_are_numbered_without_gaps_in_the_order_of_their_numbers():
    made = numbered(MAP)
    assert made.dtype == np.uint16
    assert made.tolist() == NUMBERED
    assert numbered(np.array([[5, 5], [9, 9]])).tolist() == [[1, 1], [2, 2]]  # no background
    assert numbered(np.zeros((2, 2), int)).tolist() == [[0, 0], [0, 0]]


def test_more_objects_than_fit_and_negative_numbers_are_refused():
    with pytest.raises(DataError, match=r"has 65,536 objects, more than 65,535"):
        numbered(np.arange(65_537).reshape(1, -1))
    with pytest.raises(DataError, match="below 0"):
        numbered(np.array([[-1, 0]]))


def test_parts_that_meet_at_a_corner_are_one():
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 1]])
    assert separated(mask).tolist() == [[1, 0, 0, 2], [0, 1, 0, 2]]


# -- outlines --


def test_an_outline_holds_the_pixels_whose_centres_are_inside(xml):
    # From x 0.5 to 3.5 and y 0.5 to 2.5: columns 1 to 3, rows 1 and 2.
    path = xml([(0.5, 0.5), (3.5, 0.5), (3.5, 2.5), (0.5, 2.5)])
    made = read_outlines(path, (4, 6))
    assert made.dtype == np.uint16
    assert np.argwhere(made).tolist() == [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]]


def test_of_two_outlines_the_first_keeps_what_both_enclose(xml):
    left = [(-0.5, -0.5), (2.5, -0.5), (2.5, 1.5), (-0.5, 1.5)]
    right = [(1.5, -0.5), (4.5, -0.5), (4.5, 1.5), (1.5, 1.5)]
    assert read_outlines(xml(left, right), (2, 5)).tolist() == [[1, 1, 1, 2, 2]] * 2
    assert read_outlines(xml(right, left), (2, 5)).tolist() == [[2, 2, 1, 1, 1]] * 2


def test_what_lies_outside_of_the_image_or_between_centres_is_left_out(xml):
    outside = [(20, 20), (30, 20), (30, 30)]
    tiny = [(1.1, 1.1), (1.2, 1.1), (1.2, 1.2)]
    square = [(-9, -9), (0.5, -9), (0.5, 0.5), (-9, 0.5)]
    assert read_outlines(xml(outside, tiny, square), (3, 3)).tolist() == [
        [1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]


def test_a_slide_without_regions_has_no_objects(xml):
    assert not read_outlines(xml(), (3, 3)).any()


@pytest.mark.parametrize(
    "polygon",
    [[], [(1, 1)], [(1, 1), (4, 4)], [(1, 1), (2, 2), (3, 3)], [(1, 1), (4, 1), (1, 1)]],
)
def test_an_open_outline_is_refused_naming_it(xml, polygon):
    path = xml([(0, 0), (3, 0), (0, 3)], polygon)
    with pytest.raises(
        DataError, match=rf"slide\.xml: the outline of region 2 is open: its {len(polygon)} vertic"
    ):
        read_outlines(path, (5, 5))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</Annotations>", "", "not a readable ImageScope annotation"),
        ('X="3"', 'X="three"', "not a readable ImageScope annotation"),
        ('X="3"', "", "not a readable ImageScope annotation"),
        ('X="3"', 'X="nan"', "a vertex that is no place"),
    ],
)
def test_a_damaged_annotation_is_refused(xml, old, new, message):
    path = xml([(0, 0), (3, 0), (0, 3)])
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_outlines(path, (5, 5))


# -- maps --


def write(path, array):
    if path.suffix == ".mat":
        savemat(path, {"inst_map": array.astype(float)})
    elif path.suffix == ".txt":
        height, width = array.shape
        path.write_text("\n".join(map(str, [f"{width} {height}", *array.reshape(-1)])))
    else:
        Image.fromarray(array.astype(np.uint16)).save(path)
    return path


@pytest.mark.parametrize("suffix", [".png", ".mat", ".txt"])
def test_a_map_is_read_from_every_form(tmp_path, suffix):
    made = read_objects(write(tmp_path / f"map{suffix}", MAP), (2, 3))
    assert (made.dtype, made.tolist()) == (np.uint16, NUMBERED)


def test_outlines_are_read_by_their_suffix(xml):
    assert read_objects(xml([(-1, -1), (1, -1), (1, 1), (-1, 1)]), (2, 2)).any()


@pytest.mark.parametrize("suffix", [".png", ".mat", ".txt"])
def test_a_map_of_another_size_than_its_image_is_refused(tmp_path, suffix):
    path = write(tmp_path / f"map{suffix}", MAP)
    with pytest.raises(DataError, match=r"map\..* has 2 x 3 pixels, its image 3 x 3"):
        read_objects(path, (3, 3))


@pytest.mark.parametrize("suffix", [".png", ".mat", ".txt"])
def test_a_map_that_cannot_be_read_is_refused(tmp_path, suffix):
    path = write(tmp_path / f"map{suffix}", MAP)
    path.write_bytes(path.read_bytes()[: {".mat": 150, ".png": 45, ".txt": -4}[suffix]])
    with pytest.raises(DataError, match=rf"map\{suffix} .* Get it again\."):
        read_objects(path, (2, 3))


def test_object_numbers_that_are_not_whole_are_refused(tmp_path):
    savemat(tmp_path / "map.mat", {"inst_map": np.array([[0.5, 1.0]])})
    with pytest.raises(DataError, match="not whole"):
        read_objects(tmp_path / "map.mat", (1, 2))


def test_a_matlab_file_without_the_map_is_refused(tmp_path):
    savemat(tmp_path / "map.mat", {"type_map": MAP})
    with pytest.raises(DataError, match="not a MATLAB file with the array inst_map"):
        read_objects(tmp_path / "map.mat", (2, 3))


# -- folders --


@pytest.fixture
def folder(tmp_path):
    """Two images of 2 x 3 pixels with an index, their ids in descending order."""
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    (tmp_path / "index.csv").write_text("id,site\nb,2\na,1\n")
    for value, name in enumerate("ab"):
        Image.fromarray(np.full((2, 3, 3), value, np.uint8)).save(
            tmp_path / "images" / f"{name}.png"
        )
        write(tmp_path / "labels" / f"{name}.png", MAP * value)
    return tmp_path


def files_of(folder, *suffixes):
    rows = read_index(folder, ("site",), "Get it.")
    return indexed("A set", folder, rows, "Get it.", suffixes or (".png",))


def test_a_folder_is_read_in_the_order_of_the_ids(folder):
    assert [row["id"] for row in read_index(folder, ("site",), "Get it.")] == ["a", "b"]
    images, objects = read_all(pairs_of(files_of(folder)), (2, 3))
    assert (images.shape, images.dtype, objects.dtype) == ((2, 3, 2, 3), np.uint8, np.uint16)
    assert images[:, 0, 0, 0].tolist() == [0, 1]
    assert objects.tolist() == [[[0, 0, 0], [0, 0, 0]], NUMBERED]
    assert files_of(folder)[0] == folder / "index.csv"


def test_the_first_suffix_that_is_there_is_taken(folder):
    (folder / "images" / "b.png").rename(folder / "images" / "b.PNG")
    assert [path.name for path in files_of(folder, ".jpg", ".png")[1::2]] == ["a.png", "b.PNG"]


def test_opacity_is_dropped(tmp_path):
    Image.fromarray(np.full((2, 2, 4), 7, np.uint8)).save(tmp_path / "a.png")
    assert read_rgb(tmp_path / "a.png").tolist() == [[[7, 7, 7]] * 2] * 2


def test_smaller_images_are_filled_up_with_white_where_that_is_asked(folder):
    images, objects = read_all(pairs_of(files_of(folder)), (3, 4), pad=True)
    assert images[1, 0].tolist() == [[1, 1, 1, 255]] * 2 + [[255] * 4]
    assert objects[1].tolist() == [[0, 1, 1, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    with pytest.raises(DataError, match="2 x 3 pixels, expected at most 2 x 2"):
        read_all(pairs_of(files_of(folder)), (2, 2), pad=True)


def test_an_image_of_another_size_is_refused(folder):
    with pytest.raises(DataError, match=r"a\.png has 2 x 3 pixels, expected 3 x 4"):
        read_all(pairs_of(files_of(folder)), (3, 4))


def test_an_image_that_cannot_be_read_is_refused(folder):
    path = folder / "images" / "b.png"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"b\.png is not a readable image"):
        read_all(pairs_of(files_of(folder)), (2, 3))


def test_a_row_without_its_file_is_refused(folder):
    (folder / "labels" / "a.png").unlink()
    with pytest.raises(DataError, match=r"A set: 1 of 5 files are missing, the first is .*a\.png"):
        files_of(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,site\na,1\na,1\n", "names a 2 times"),
        ("id\na\n", "not a table with the columns id, site"),
        ("id,site\n", "not a table with the columns id, site"),
    ],
)
def test_an_index_of_other_rows_is_refused(folder, text, message):
    (folder / "index.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_index(folder, ("site",), "Get it.")
