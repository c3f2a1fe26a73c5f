"""Digests of source code: blind to words about the code, sensitive to the code."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import safetensors

from fedtables.results import sourcecode
from fedtables.results.sourcecode import (
    code_digest,
    file_libraries,
    file_source_digest,
    imported_modules,
    source_digest,
    source_libraries,
)

CODE = '''"""Module."""
import fedtables.inner


class A:
    """Class."""

    x: int = 1
    """Field."""


def f():
    """Function."""
    return 1  # one
'''


@pytest.fixture(autouse=True)
def fresh_caches():
    yield
    _forget()


def _forget():
    source_digest.cache_clear()
    source_libraries.cache_clear()


@pytest.fixture
def digest_of(tmp_path, monkeypatch):
    """The digest of `outer` in a new package with the given files; every call is a package of its
    own.
    """
    numbers = iter(range(100))

    def compute(outer=CODE, **others):
        root = tmp_path / str(next(numbers))
        for name, text in {"outer": outer, "inner": "y = 1\n", **others}.items():
            path = root / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(sourcecode, "ROOT", root)
        _forget()
        return source_digest("fedtables.outer")

    return compute


def test_the_same_code_in_another_place_has_the_same_digest(digest_of):
    assert digest_of() == digest_of()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# one", "# eins"),
        ('"""Module."""', '"""Another module."""'),
        ('"""Class."""', '"""Another class."""'),
        ('"""Field."""', '"""Another field."""'),
        ('    """Function."""\n', ""),
        ("\n\n\nclass", "\nclass"),
    ],
)
def test_a_change_of_words_or_space_keeps_the_digest(digest_of, old, new):
    assert CODE.replace(old, new) != CODE
    assert digest_of(CODE.replace(old, new)) == digest_of()


@pytest.mark.parametrize(
    ("old", "new"), [("return 1", "return 2"), ("x: int = 1", "x: int = 2"), ("def f", "def g")]
)
def test_a_change_of_code_alters_the_digest(digest_of, old, new):
    assert digest_of(CODE.replace(old, new)) != digest_of()


@pytest.mark.parametrize(
    "line",
    [
        "import fedtables.inner",
        "from fedtables.inner import y",
        "from fedtables.pack import part",
        "from fedtables.pack.part import z",
        "import fedtables.pack.part",
    ],
)
def test_every_form_of_import_reaches_a_module_at_any_depth(digest_of, line):
    middle = {
        "inner": "import fedtables.deep\n",
        "pack/part": "import fedtables.deep\n",
        "pack/__init__": "",
    }
    changed = digest_of(line + "\n", deep="v = 2\n", **middle)
    assert changed != digest_of(line + "\n", deep="v = 1\n", **middle)


@pytest.mark.parametrize(
    "line", ["from . import part", "from .part import z", "from .. import part"]
)
def test_a_relative_import_reaches_a_module_too(digest_of, line):
    def digest(depth):
        pack = {"pack/__init__": "", "pack/part": "import fedtables.deep\n"}
        inside = {"pack/inside/__init__": "", "pack/inside/module": line + "\n"}
        part = {"pack/inside/part": "import fedtables.deep\n", "deep": f"v = {depth}\n"}
        return digest_of("import fedtables.pack.inside.module\n", **pack, **inside, **part)

    assert digest(2) != digest(1)


def test_the_package_that_a_module_lies_in_counts(digest_of):
    first, other = (
        digest_of(
            "import fedtables.pack.part\n",
            **{"pack/__init__": f"y = {y}\n", "pack/part": "z = 1\n"},
        )
        for y in (1, 2)
    )
    assert first != other


@pytest.fixture
def install(monkeypatch):
    """Have libraries installed as if in these versions."""

    def installed(**versions):
        real = sourcecode.metadata.version
        monkeypatch.setattr(
            sourcecode.metadata, "version", lambda name: versions.get(name) or real(name)
        )
        _forget()

    return installed


@pytest.mark.parametrize(
    ("line", "library"),
    [
        ("import scipy.ndimage", "scipy"),
        ("from sklearn.datasets import load_digits", "scikit-learn"),
        ("from PIL import Image", "pillow"),
        ("def f():\n    from skimage import metrics", "scikit-image"),
        ("import fedtables.inner", "monai"),
    ],
)
def test_another_version_of_a_library_that_the_code_imports_alters_the_digest(
    digest_of, install, line, library
):
    def digest():
        return digest_of(f"{line}\n", inner="import monai\n", unrelated="import timm\n")

    first = digest()
    install(timm="0.1")
    assert digest() == first
    install(**{library: "0.1"})
    assert digest() != first
    assert source_libraries("fedtables.outer")[library] == "0.1"


def test_a_library_that_moves_no_number_does_not_count(digest_of, install):
    first = digest_of("import requests\n")
    install(requests="0.1")
    assert digest_of("import requests\n") == first
    assert source_libraries("fedtables.outer") == {}


def test_the_text_file_of_a_module_counts(digest_of, tmp_path):
    before = digest_of()
    (tmp_path / "0" / "inner.txt").write_text("278 212")
    _forget()
    assert source_digest("fedtables.outer") != before


def test_a_module_outside_the_package_is_refused():
    with pytest.raises(ValueError, match=r"json is not a module of fedtables"):
        source_digest("json")
    with pytest.raises(ValueError, match=r"json is not a module of fedtables"):
        imported_modules("json")


def test_a_plugin_file_is_digested_with_the_code_of_ours_that_it_imports(tmp_path, monkeypatch):
    def plugin(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(path)))
        return code_digest(name)

    first = plugin("plug_a", "from fedtables.results.files import digest\nx = 1\n")
    assert (
        plugin("plug_b", '"""Words."""\nfrom fedtables.results.files import digest\nx = 1\n')
        == first
    )
    assert plugin("plug_c", "from fedtables.results.files import digest\nx = 2\n") != first
    assert file_source_digest(tmp_path / "plug_a.py") == first


def test_a_plugin_package_is_digested_whole_from_any_of_its_modules(tmp_path, monkeypatch):
    def plugin(name, text):
        path = tmp_path / name / "__init__.py"
        path.parent.mkdir()
        path.write_text("from .algorithm import x\n")
        (path.parent / "algorithm.py").write_text(
            "from fedtables.results.files import digest\nx = 1\n"
        )
        (path.parent / "other.py").write_text(text)
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(__file__=str(path)))
        return code_digest(f"{name}.algorithm")

    first = plugin("pack_a", "y = 1\n")
    assert plugin("pack_b", "y = 1  # as before\n") == first
    assert plugin("pack_c", "y = 2\n") != first
    assert file_source_digest(tmp_path / "pack_a") == first


@pytest.fixture
def beside(tmp_path):
    """A plug-in that imports what lies beside it: a file, and by that a package with two modules,
    one of which imports a library.
    """
    files = {
        "plug.py": "def f():\n    import helper\n    return helper\n",
        "helper.py": "from lib.deep import part\n",
        "lib/__init__.py": "",
        "lib/deep/__init__.py": "from .other import y\n",
        "lib/deep/part.py": "x = 1\n",
        "lib/deep/other.py": "import sklearn\ny = 1\n",
        "unrelated.py": "z = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "changed", ["helper.py", "lib/__init__.py", "lib/deep/part.py", "lib/deep/other.py"]
)
def test_what_a_plug_in_imports_from_its_own_folder_is_its_code(beside, changed):
    first = file_source_digest(beside / "plug.py")
    path = beside / changed
    path.write_text(path.read_text() + "# words\n")
    (beside / "unrelated.py").write_text("z = 2\n")
    assert file_source_digest(beside / "plug.py") == first
    path.write_text(path.read_text() + "more = 1\n")
    assert file_source_digest(beside / "plug.py") != first


def test_a_package_s_neighbours_and_folders_on_the_import_path_count_too(beside, monkeypatch):
    package, elsewhere = beside / "pack", beside / "elsewhere"
    for folder in (package, elsewhere):
        folder.mkdir()
    (package / "__init__.py").write_text("import helper\nimport far\n")
    (elsewhere / "far.py").write_text("a = 1\n")
    monkeypatch.syspath_prepend(elsewhere)
    first = file_source_digest(package)
    (beside / "helper.py").write_text("changed = 1\n")
    second = file_source_digest(package)
    (elsewhere / "far.py").write_text("a = 2\n")
    assert len({first, second, file_source_digest(package)}) == 3


def test_the_libraries_of_a_plug_in_are_those_of_all_its_files(beside, install):
    first = file_source_digest(beside / "plug.py")
    install(**{"scikit-learn": "0.1"})
    assert file_libraries(beside / "plug.py") == {"scikit-learn": "0.1"}
    assert file_source_digest(beside / "plug.py") != first


def test_a_library_is_not_searched_for_what_it_imports():
    files = sourcecode.plugin_files(Path(str(safetensors.__file__)))
    assert {path.parent.name for path in files} == {"safetensors"}


def test_code_that_nobody_can_read_again_has_another_digest_at_every_call(monkeypatch):
    notebook, stream = ModuleType("cells_of_a_notebook"), ModuleType("a_stream")
    stream.__file__ = "<stdin>"
    for module in (notebook, stream):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        assert code_digest(module.__name__) != code_digest(module.__name__)


def test_a_name_of_the_package_itself_counts_as_the_module_where_it_lives(tmp_path):
    short, whole = tmp_path / "short.py", tmp_path / "whole.py"
    short.write_text("from fedtables import partition\n")
    whole.write_text("from fedtables.federation.own import partition\n")
    assert file_libraries(short) == file_libraries(whole) != {}


def test_every_python_gives_code_the_same_digest(tmp_path):
    """Newer ones have more fields in their syntax trees. A change of this digest makes every cell
    and stage of all users stale.
    """
    path = tmp_path / "code.py"
    path.write_text(CODE)
    expected = "dd16095dd26616cb01fbec3689904dd23f98193c7e35b1a8d27728af65b52b00"
    assert file_source_digest(path) == expected
