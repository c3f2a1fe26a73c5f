"""A part of FedIOD's Table 1 from Python, in cells as a notebook has them (`# %%`).

Start the notebook in the checkout, or run this file there: `PYTHONPATH=. python
docs/examples/notebook.py [FOLDER]`; it takes about 20 seconds.
"""

# %% Regenerate a part of a table; a second call takes what is finished from the cache
import sys

import fedtables
from fedtables.results import frame

folder = sys.argv[1] if len(sys.argv) > 1 else "runs"
cells = fedtables.reproduce(
    "fediod/table1",
    only={"dataset": "cifar10", "alpha": "1", "row": ("fedavg", "fedmd", "fedkd")},
    seeds=[0, 1],
    results=folder,
    quiet=True,
)

# %% One line per cell, metric and seed, the published value beside the measured one
print(cells[["row", "dataset", "alpha", "seed", "value", "published", "difference"]])

# %% Measured beside published, means over seeds
print(cells.pivot_table(index="row", columns="alpha", values=["value", "published"]))

# %% Mean, standard deviation and number of seeds, as in the table's CSV
table = frame.over_seeds(cells)
print(table[["row", "column", "value", "std", "n", "published", "difference"]])

# %% What a megabyte to the server bought
print(cells.assign(megabytes=cells["bytes_up"] / 1e6).groupby("row")[["megabytes", "value"]].mean())

# %% Every record in a folder of results, here with what earlier commands left
everything = frame.load(folder)
print(everything.groupby(["profile", "paper", "table", "origin"])["value"].agg(["size", "mean"]))

# %% A picture: points are seeds, a cross is the published value
from matplotlib import pyplot as plt  # noqa: E402

figure, axis = plt.subplots()
axis.scatter(cells["row"], cells["value"], label="measured")
axis.scatter(cells["row"], cells["published"], marker="x", label="published")
axis.set_ylabel("test accuracy")
axis.tick_params(axis="x", rotation=20)
axis.legend()
figure.savefig(f"{folder}/notebook.png")
