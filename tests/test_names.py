"""What `import fedtables` has, at run time and for type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import fedtables


def test_type_checkers_find_the_names_where_they_live():
    stub = Path(fedtables.__file__).with_name("__init__.pyi")
    imported = [
        node for node in ast.parse(stub.read_text()).body if isinstance(node, ast.ImportFrom)
    ]
    assert {a.asname: node.module for node in imported for a in node.names} == fedtables.HOMES


def test_every_name_is_there_when_it_is_asked_for_and_none_before():
    script = "import sys, fedtables; before = 'torch' in sys.modules; from fedtables import *; "
    script += "print(before, all(callable(globals()[name]) for name in fedtables.__all__))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]
