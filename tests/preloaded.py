"""What the server has done, from which processes of commands are forked (`tests.forking`): it has
imported the frameworks, and done once what every process does first.
"""

import gc
import importlib
import os
import tempfile
from pathlib import Path

IMPORTED = (
    "torch",
    "torchvision",
    "timm",
    "opacus",
    "monai.networks.nets",
    "scipy.stats",
    "skimage.metrics",
    "sklearn.datasets",
    "matplotlib.pyplot",
    "typer",
    "rich.progress",
    "pandas",
    "torch._dynamo",
    "fedtables.benchmarks.running.execute",
    "fedtables.benchmarks.running.planning",
    "fedtables.benchmarks.commands.regeneration",
)


def _warm() -> None:
    """Make and digest the commonest data sets, digest sources, and load Matplotlib's fonts."""
    from matplotlib.figure import Figure

    from fedtables.datasets import catalogue
    from fedtables.results.sourcecode import folder_modules, source_digest

    source_digest(
        "fedtables.benchmarks.running.execute", *folder_modules("fedtables.benchmarks.measures")
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["FEDTABLES_CACHE"] = folder  # a command brings its own
        for name in ("digits", "shapes", "shapes-100", "scenes"):
            catalogue.resolve(name, home=Path(folder))
        figure = Figure()
        figure.subplots().set_title("fonts")
        for suffix in ("png", "svg", "pdf"):
            figure.savefig(Path(folder) / f"fonts.{suffix}")


for name in IMPORTED:
    importlib.import_module(name)
_warm()
gc.freeze()  # or each forked process would copy what the collector touches
