"""FedAvg in this suite and in two simulators of federated learning, by hand: `python -m
benchmarks.speed.peers`.

All get the same arrays (CIFAR-10), the same twenty clients of 128 images, the same initial weights,
the same order of images and plain SGD; everyone takes part in every round, and nothing is
evaluated. Ours converts and normalises images in every step and encodes every model that crosses;
the others are handed normalised images. A time is of a round, the first one aside, in which
processes start and code is imported.

A row counts only if its final weights are, up to rounding, those of a bare loop over the same
batches; otherwise it says how far they are, and no ratio. Ours are the same to the last bit as the
loop's with channels last, which is how we train. The others train in the usual memory layout, whose
sums are rounded in another order; how far that alone moves the loop's weights is the most that is
allowed. (As a share of how far training moves them: 0.01 with batches of 16, where another order of
batches makes 0.05; 0.002 and 0.02 with 64.) Running statistics of BatchNorm are left out: pfl does
not average them, and training does not read them.

A simulator that is not installed is left out. In an environment of their own, since their
requirements are not ours:

    pip install "pfl[pytorch]==0.6.0" "flwr[simulation]"
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.speed.pairs import ROUNDS as REPEATS
from benchmarks.speed.pairs import Comparison, Timed
from benchmarks.speed.rounds import (
    CLIENTS,
    NETWORK,
    SAMPLES,
    Outcome,
    bare_loop,
    clients_data,
    handed_over,
    initial_state,
    ours,
)
from benchmarks.speed.simulators import flower, pfl

PEERS = {
    "pfl": ("pfl", pfl, 'pip install "pfl[pytorch]==0.6.0"'),
    "flwr": ("Flower", flower, 'pip install "flwr[simulation]"'),
}
"""By the package's name."""


def distance(
    weights: dict[str, torch.Tensor],
    wanted: dict[str, torch.Tensor],
    start: dict[str, torch.Tensor],
) -> float:
    """How far `weights` are from `wanted`, over how far that is from `start`."""

    def norm(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
        return float(
            torch.cat(
                [(one[name].double() - other[name].double()).flatten() for name in wanted]
            ).norm()
        )

    return norm(weights, wanted) / norm(wanted, start)


def compare_at(batch_size: int, repeats: int, folder: str) -> Comparison:
    """Print the comparison at a batch size; without ratios where weights differ."""
    path, start = str(handed_over(batch_size, folder)), initial_state(batch_size)
    usual = bare_loop(batch_size, path).parameters
    channels_last = bare_loop(batch_size, path, torch.channels_last).parameters
    label = clients_data()[0]
    title = (
        f"seconds of a round of FedAvg, {NETWORK}, {CLIENTS} clients of {SAMPLES} images of"
        f" {label}, batch {batch_size}"
    )
    comparison = Comparison(
        title, {"fedtables": lambda: Timed(ours(batch_size).round_seconds)}, work=CLIENTS * SAMPLES
    )
    apart, rounding = (
        distance(ours(batch_size).parameters, channels_last, start),
        distance(usual, channels_last, start),
    )
    if apart > rounding:
        raise SystemExit(
            f"our own weights are {apart:.4f} from the bare loop's; nothing can be compared"
        )
    comparison.notes["fedtables"] = f"weights {apart:.4f} from the bare loop, channels last"
    comparison.ways["bare loop"] = functools.partial(_timed, bare_loop, batch_size, path)
    comparison.notes["bare loop"] = f"rounding alone moves them {rounding:.4f}"
    for package, (name, run, command) in PEERS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{name}: not installed, left out; {command}")
            continue
        try:
            apart = distance(run(batch_size, path).parameters, usual, start)
        except (
            Exception
        ) as error:  # of another project's code; the others are compared all the same
            print(f"{name}: left out, it failed here: {type(error).__name__}: {error}")
            continue
        if not apart <= rounding:
            print(
                f"{name}: not comparable, its weights are {apart:.4f} from the bare loop's;"
                f" rounding moves them {rounding:.4f}"
            )
            continue
        comparison.ways[name] = functools.partial(_timed, run, batch_size, path)
        comparison.notes[name] = f"weights {apart:.4f} from the bare loop"
    comparison.run(repeats)
    print("\n".join(comparison.lines()))
    return comparison


def _timed(run: Callable[[int, str], Outcome], batch_size: int, path: str) -> Timed:
    return Timed(run(batch_size, path).round_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[16, 64])
    parser.add_argument(
        "--repeats", type=int, default=REPEATS, help="interleaved rounds of the comparison"
    )
    parser.add_argument("--json", type=Path, help="write all times there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    os.environ.update(OMP_NUM_THREADS="1", FLWR_TELEMETRY_ENABLED="0", RAY_USAGE_STATS_ENABLED="0")
    logging.disable(logging.WARNING)
    comparisons = {}
    with tempfile.TemporaryDirectory() as folder:
        for batch_size in options.batch_sizes:
            comparison = compare_at(batch_size, options.repeats, folder)
            comparisons[comparison.title] = comparison.to_json()
    if options.json:
        options.json.write_text(json.dumps(comparisons, indent=1))


if __name__ == "__main__":
    main()
