"""What every reader promises of a set that lies in the data home. Each reader's tests hold it to
those that fit, with a set that they write.
"""

import re

import numpy as np
import pytest

from fedtables.datasets import catalogue
from fedtables.datasets.source import SYNTHETIC, DataError


def _some(paths):
    """The first, the last and one in the middle."""
    return {paths[0], paths[len(paths) // 2], paths[-1]}


def _refused(entry, home):
    """The message with which a set is refused, in one line, with how to get it."""
    with pytest.raises(DataError) as caught:
        catalogue.resolve(entry.name, home=home)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def is_absent_without_files(entry, write, home):
    assert entry.files(home) == []
    message = rf"^{re.escape(entry.title)} is not under .*{re.escape(entry.how_to_get)}$"
    with pytest.raises(DataError, match=message):
        catalogue.load(entry.name, home)


def is_used_when_it_is_there(entry, write, home):
    write(home)
    data = catalogue.resolve(entry.name, home=home)
    assert (data.used, data.origin != SYNTHETIC) == (entry.name, True)
    files = entry.files(home)
    assert len(files) == len(set(files))
    assert all(path.is_file() for path in files)
    embedded = catalogue.resolve(entry.name, embedded=True, home=home)
    assert (embedded.used, entry.stand_ins[-1]) == (entry.embedded, entry.embedded)


def is_refused_without_one_file(entry, write, home):
    write(home)
    for lost in _some(entry.files(home)):
        content = lost.read_bytes()
        lost.unlink()
        message = _refused(entry, home)
        assert entry.how_to_get in message
        assert lost.name in message or str(lost.parents[1]) in message
        lost.write_bytes(content)


def is_refused_with_a_damaged_file(entry, write, home):
    write(home)
    for path in _some(entry.files(home)):
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 3])
        assert path.name in _refused(entry, home)
        path.write_bytes(content)


def is_read_one_folder_deeper_and_beside_clutter(entry, write, home):
    for place in ("here", "there/deeper"):
        write(home / place)
    for path in [*(home / "there").rglob("*.*")]:
        if path.is_file():
            path.with_name(f"._{path.name}").write_bytes(b"clutter")
    (home / "there" / "__MACOSX").mkdir()
    plain, deeper = entry.load(home / "here"), entry.load(home / "there")
    for name, split in plain.items():
        assert np.array_equal(split.images, deeper[name].images)
        assert np.array_equal(split.labels, deeper[name].labels)


def promised(promises, cases):
    """The test of these promises by sources, each with what writes it into a data home."""

    @pytest.mark.parametrize("promise", promises)
    @pytest.mark.parametrize(("entry", "write"), cases)
    def test(tmp_path, promise, entry, write):
        promise(entry, write, tmp_path)

    return test


OF_FILES = (
    is_absent_without_files,
    is_used_when_it_is_there,
    is_refused_with_a_damaged_file,
    is_read_one_folder_deeper_and_beside_clutter,
)
"""Of sets of one file, and of those in which some may be missing."""
OF_FOLDERS = (*OF_FILES, is_refused_without_one_file)
"""Of sets of which each file is known."""
