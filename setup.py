"""What `pyproject.toml` cannot say: the folder `methods/` is the package `fedtables.methods`, and
the others alike. Nothing that is called `datasets` or `models` is installed.
"""

from setuptools import find_namespace_packages, find_packages, setup

CODE = find_packages(exclude=["tests*"])
DATA = find_namespace_packages(
    include=["reports.templates", "results.embedded*", "results.published*"]
)

setup(
    packages=["fedtables", *(f"fedtables.{folder}" for folder in CODE + DATA)],
    package_dir={
        "fedtables": "src/fedtables",
        **{f"fedtables.{folder}": folder for folder in CODE if "." not in folder},
    },
)
