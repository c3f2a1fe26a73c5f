"""How the loops run on a machine, faster or slower, with results that differ by rounding."""

from dataclasses import dataclass

from fedtables.results.names import check_known

PRECISIONS = ("fp32", "tf32", "bf16")
COMPILE = ("off", "default", "graphs")


@dataclass(frozen=True)
class Execution:
    """How training runs; evaluation and outputs on a fixed public set are always eager and never in
    bf16, but in TF32 where `tf32_on` says so.

    Raises ValueError for a value that does not exist, or a combination.
    """

    precision: str = "fp32"
    """`fp32`; `tf32`: on CUDA, products of fp32 matrices in TF32; `bf16`: forward and backward pass
    under autocast, and on CUDA other products as under `tf32`."""
    compile: str = "off"
    """`off`; `default`: by torch.compile; `graphs`: whole steps, augmentation and optimiser
    included, as CUDA graphs, not compiled."""
    stacked: int = 1
    """Clients that train side by side, a step of each in turn."""

    def __post_init__(self) -> None:
        check_known(self, precision=PRECISIONS, compile=COMPILE)
        if self.stacked < 1:
            raise ValueError(f"stacked must be at least 1, not {self.stacked}")
        if self.stacked > 1 and self.compiled:
            raise ValueError(
                "stacked clients train uncompiled: use one of stacked and compile, or both with"
                " compile graphs"
            )

    def tf32_on(self, device: str) -> bool:
        """Whether products of fp32 matrices are in TF32 on a device, `cuda:0` or `cuda`."""
        fast = ("tf32", "bf16") if device.startswith("cuda") else ("tf32",)
        return self.precision in fast

    @property
    def compiled(self) -> bool:
        """Whether torch.compile has a part in it."""
        return self.compile == "default"

    @property
    def label(self) -> str:
        """What differs from the default, for file names and titles: `bf16-compiled`, or nothing."""
        parts = {
            self.precision: self.precision != "fp32",
            "compiled" if self.compile == "default" else self.compile: self.compile != "off",
            f"stacked{self.stacked}": self.stacked > 1,
        }
        return "-".join(name for name, differs in parts.items() if differs)


DEFAULT = Execution()
"""Eager, fp32, one client after another."""
FAST = Execution(precision="bf16", compile="graphs")
"""What was fastest on CUDA, one client at a time (docs/results/speed.md). How many clients fit side
by side depends on the network."""
