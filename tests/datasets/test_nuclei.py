"""Instance maps in the forms that sets come in, and folders of images with them."""

import zlib

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from fedtables.datasets.nuclei import (
    indexed,
    numbered,
    pairs_of,
    read_all,
    read_array,
    read_index,
    read_objects,
    read_outlines,
    separated,
)
from fedtables.datasets.source import DataError

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


@pytest.mark.parametrize(
    "polygon", [[], [(1, 1)], [(1, 1), (4, 4)], [(1, 1), (2, 2), (3, 3)], [(1, 1), (4, 1), (1, 1)]]
)
def test_an_outline_that_encloses_nothing_is_left_out_and_told(xml, polygon):
    square = [(-0.5, -0.5), (1.5, -0.5), (1.5, 1.5), (-0.5, 1.5)]
    with pytest.warns(UserWarning, match=r"slide\.xml: left out of 2 regions, .*: number 2"):
        made = read_outlines(xml(square, polygon), (3, 3))
    assert made.tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    with pytest.raises(DataError, match=r"none of its 1 regions has a pixel of the image"):
        read_outlines(xml(polygon), (3, 3))


def test_an_outline_that_crosses_itself_holds_both_its_parts(xml):
    # A bow tie: rows 10 to 30 of columns 10 to 30, as wide as the row is away from row 20.
    made = read_outlines(xml([(10, 10), (30, 30), (30, 10), (10, 30)]), (40, 40))
    rows, columns = np.indices(made.shape)
    inside = (rows > 10) & (rows < 30) & (columns > 10) & (columns < 30)
    right = inside & (abs(columns - 20) > abs(rows - 20))
    assert made[right].all()
    assert not made[inside & (abs(columns - 20) < abs(rows - 20))].any()
    assert np.count_nonzero(made) == 241


def test_a_hole_is_background_in_any_order(xml):
    square = [(-0.5, -0.5), (4.5, -0.5), (4.5, 3.5), (-0.5, 3.5)]
    hole = [(0.5, 0.5), (2.5, 0.5), (2.5, 2.5), (0.5, 2.5)]
    right = np.ones((4, 5), int)
    right[1:3, 1:3] = 0
    for outlines_of, number in (((square, hole), 2), ((hole, square), 1)):
        path = xml(*outlines_of)
        text = path.read_text()
        path.write_text(text.replace(f'Id="{number}" Type', f'Id="{number}" NegativeROA="1" Type'))
        assert read_outlines(path, (4, 5)).tolist() == right.tolist()


def test_outlines_are_read_in_a_namespace_too(xml):
    path = xml([(-0.5, -0.5), (1.5, -0.5), (1.5, 1.5), (-0.5, 1.5)])
    path.write_text(path.read_text().replace("<Annotations", '<Annotations xmlns="http://x"'))
    assert np.count_nonzero(read_outlines(path, (3, 3))) == 4


@pytest.mark.parametrize(
    "text",
    [
        "<ASAP_Annotations><Annotations><Annotation><Coordinates/></Annotation></Annotations>"
        "</ASAP_Annotations>",
        "<annotations><ndpviewstate/></annotations>",
        "<Annotations><Annotation/></Annotations>",
    ],
)
def test_xml_of_another_schema_is_refused_naming_it(tmp_path, text):
    (tmp_path / "slide.xml").write_text(text)
    root = text[1 : text.index(">")]
    with pytest.raises(DataError, match=rf"slide\.xml is XML of another schema .*root is {root},"):
        read_outlines(tmp_path / "slide.xml", (3, 3))


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
def test_a_map_is_read_from_every_form_and_refused_if_its_image_has_another_size(tmp_path, suffix):
    path = write(tmp_path / f"map{suffix}", MAP)
    made = read_objects(path, (2, 3))
    assert (made.dtype, made.tolist()) == (np.uint16, NUMBERED)
    with pytest.raises(DataError, match=r"map\..* has 2 x 3 pixels, its image 3 x 3"):
        read_objects(path, (3, 3))


@pytest.mark.parametrize("suffix", [".png", ".mat", ".txt"])
def test_a_map_that_cannot_be_read_is_refused(tmp_path, suffix):
    path = write(tmp_path / f"map{suffix}", MAP)
    path.write_bytes(path.read_bytes()[: {".mat": 150, ".png": 45, ".txt": -4}[suffix]])
    with pytest.raises(DataError, match=rf"map\{suffix} .* Get it again\."):
        read_objects(path, (2, 3))


NUCLEI = np.zeros((40, 40), np.uint8)
for row in range(5):
    for column in range(5):
        NUCLEI[8 * row + 1 : 8 * row + 7, 8 * column + 1 : 8 * column + 7] = 5 * row + column + 1


def saved(path, array):
    Image.fromarray(array).save(path)
    return path


def test_an_instance_map_and_one_nucleus_alone_are_read(tmp_path):
    assert np.array_equal(read_objects(saved(tmp_path / "a.png", NUCLEI), (40, 40)), NUCLEI)
    one = (NUCLEI == 7).astype(np.uint8)
    for value in (1, 255):
        made = read_objects(saved(tmp_path / "a.png", one * np.uint8(value)), (40, 40))
        assert np.array_equal(made, one)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".mat", ".txt"])
@pytest.mark.parametrize(
    ("objects", "numbers"),
    [
        (np.where(NUCLEI > 0, 255, 0), 1),
        (NUCLEI > 0, 1),
        (NUCLEI % 4, 3),  # classes of nuclei
    ],
)
def test_a_mask_or_a_map_of_classes_is_no_instance_map(tmp_path, objects, numbers, suffix):
    path = tmp_path / f"map{suffix}"
    if suffix == ".tif":
        saved(path, objects.astype(np.uint8))
    else:
        write(path, objects.astype(int))
    with pytest.raises(
        DataError, match=rf"map\{suffix} has \d+ separate parts of {numbers} numbers"
    ):
        read_objects(path, (40, 40))


@pytest.mark.parametrize(
    "objects",
    [
        np.where(NUCLEI > 0, NUCLEI, 255),  # the background is 255
        np.where(NUCLEI > 0, 0, 255).astype(np.uint8),  # a mask, inverted
        np.full((40, 40), 3, np.uint8),
    ],
)
def test_a_background_other_than_0_is_no_nucleus(tmp_path, objects):
    sparse = np.zeros((80, 80), np.uint8)
    sparse[:] = objects[0, 0]
    sparse[:40, :40] = objects
    with pytest.raises(DataError, match=r"object \d+ covers more than half of the image"):
        read_objects(saved(tmp_path / "a.png", sparse), (80, 80))


@pytest.mark.parametrize("name", ["map.jpg", "map.png"])
def test_a_jpeg_is_no_map_whatever_its_name(tmp_path, name):
    Image.fromarray(NUCLEI).save(tmp_path / name, format="JPEG")
    with pytest.raises(DataError, match=r"object numbers \(PNG, TIFF, BMP\) \(it is none of PNG"):
        read_objects(tmp_path / name, (40, 40))


def test_a_matlab_file_without_the_map_is_refused(tmp_path):
    savemat(tmp_path / "map.mat", {"type_map": MAP})
    with pytest.raises(DataError, match="not a MATLAB file with the array inst_map"):
        read_objects(tmp_path / "map.mat", (2, 3))


# -- MATLAB files --

NUMBERS = ["u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]


def save(path, packed=False, **arrays):
    savemat(path, arrays, do_compression=packed)
    return path


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", NUMBERS)
def test_an_array_is_found_among_others_and_read_in_its_type(tmp_path, kind, packed):
    array = MAP.astype(kind) if kind != "u1" else (MAP % 256).astype(kind)
    cell = np.array([1, "a"], dtype=object)
    path = save(tmp_path / "a.mat", packed, other=np.eye(3), cell=cell, inst_map=array, last="x")
    found = read_array(path, "inst_map")
    assert (found.dtype, found.tolist()) == (array.dtype, array.tolist())


def test_a_name_and_numbers_of_four_bytes_are_stored_short(tmp_path):
    path = save(tmp_path / "a.mat", m=np.array([[1, 2], [3, 4]], np.uint8))
    assert read_array(path, "m").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (MAP + 1j, "not one of real numbers"),
        (np.array(["abc"]), "not one of real numbers"),
        ({"a": 1}, "not one of real numbers"),
        (np.array([1, "a"], dtype=object), "not one of real numbers"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(tmp_path, array, message):
    with pytest.raises(ValueError, match=message):
        read_array(save(tmp_path / "a.mat", inst_map=array), "inst_map")


def test_another_version_is_refused_saying_so(tmp_path):
    path = tmp_path / "a.mat"
    savemat(path, {"inst_map": MAP}, format="4")
    later = b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(400)
    turned = b"MATLAB 5.0 MAT-file".ljust(124) + b"\1\0MI" + bytes(400)
    for raw in (path.read_bytes(), later, turned):
        path.write_bytes(raw)
        with pytest.raises(ValueError, match="not of version 5, or is big-endian; save it with"):
            read_array(path, "inst_map")


@pytest.mark.parametrize("packed", [False, True])
def test_every_byte_of_a_file_may_be_changed(tmp_path, packed):
    path = save(tmp_path / "a.mat", packed, inst_map=MAP.astype(float))
    raw = path.read_bytes()
    refused = 0
    for at in range(124, len(raw)):
        for value in (0x00, 0x0F, 0xF5, 0xFF):
            path.write_bytes(raw[:at] + bytes([value]) + raw[at + 1 :])
            try:
                assert isinstance(read_array(path, "inst_map"), np.ndarray)
            except ValueError:
                refused += 1
    assert refused > 100


def test_an_array_that_unpacks_to_more_than_may_be_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("fedtables.datasets.nuclei.MOST_UNPACKED", 1000)
    with pytest.raises(ValueError, match="larger than 1,000 bytes"):
        read_array(save(tmp_path / "a.mat", True, inst_map=np.zeros((99, 99))), "inst_map")
    assert len(zlib.compress(bytes(99 * 99 * 8))) < 1000


# -- folders --


@pytest.fixture
def folder(tmp_path):
    """Two images of 2 x 3 pixels with an index, their ids in descending order."""
    for name in ("images", "labels"):
        (tmp_path / name).mkdir()
    (tmp_path / "index.csv").write_text("id,site\nb,2\na,1\n")
    for value, name in enumerate("ab"):
        image = Image.fromarray(np.full((2, 3, 3), value, np.uint8))
        image.save(tmp_path / "images" / f"{name}.png")
        write(tmp_path / "labels" / f"{name}.png", MAP * value)
    return tmp_path


def files_of(folder, *suffixes):
    return indexed(folder, read_index(folder, "site"), suffixes or (".png",))


def test_a_folder_is_read_in_the_order_of_the_ids(folder):
    assert [row["id"] for row in read_index(folder, "site")] == ["a", "b"]
    images, objects = read_all(pairs_of(files_of(folder)), (2, 3))
    assert (images.shape, images.dtype, objects.dtype) == ((2, 3, 2, 3), np.uint8, np.uint16)
    assert images[:, 0, 0, 0].tolist() == [0, 1]
    assert objects.tolist() == [[[0, 0, 0], [0, 0, 0]], NUMBERED]
    assert files_of(folder)[0] == folder / "index.csv"


def test_smaller_images_are_filled_up_with_white_where_that_is_asked(folder):
    images, objects = read_all(pairs_of(files_of(folder)), (3, 4), pad=True)
    assert images[1, 0].tolist() == [[1, 1, 1, 255]] * 2 + [[255] * 4]
    assert objects[1].tolist() == [[0, 1, 1, 0], [0, 0, 2, 0], [0, 0, 0, 0]]
    with pytest.raises(DataError, match="2 x 3 pixels, expected at most 2 x 2"):
        read_all(pairs_of(files_of(folder)), (2, 2), pad=True)


def test_an_image_of_another_size_is_refused(folder):
    with pytest.raises(DataError, match=r"a\.png has 2 x 3 pixels, expected 3 x 4"):
        read_all(pairs_of(files_of(folder)), (3, 4))
