"""What a scenario is given."""

from dataclasses import dataclass

from fedtables.datasets.catalogue import ResolvedData


@dataclass(frozen=True)
class DataSets:
    """The data sets of a federation, as they were found."""

    target: ResolvedData
    """Of the task: its test samples, and the clients' samples unless `private` is given."""
    public: ResolvedData | None = None
    """Of the public samples, where they are of another."""
    private: ResolvedData | None = None
    """Of the clients' samples, where they are of another."""
    others: tuple[ResolvedData, ...] = ()
    """Of further sites, and of test samples that are none of the clients'."""


def built_on(device: object) -> str:
    """Where the samples of a run on a device are built: in host memory, or as sizes for a plan."""
    return "meta" if str(device) == "meta" else "cpu"
