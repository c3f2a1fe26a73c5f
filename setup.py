"""What `pyproject.toml` cannot say: the folder `methods/` is the package `fedtables.methods`, and
the others alike. Nothing that is called `datasets` or `models` is installed.
"""

from setuptools import find_packages, setup

FOLDERS = find_packages(exclude=["tests*"])

setup(
    packages=["fedtables", *(f"fedtables.{folder}" for folder in FOLDERS)],
    package_dir={
        "fedtables": "src/fedtables",
        **{f"fedtables.{folder}": folder for folder in FOLDERS if "." not in folder},
    },
)
