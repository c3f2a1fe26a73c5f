"""FedIOD's segmentation as released."""

from benchmarks.tables import registry
from benchmarks.tables.expansion import expand
from benchmarks.tables.selection import Selection


def settings(protocol):
    """The method's own, of the nuclei's Table 3."""
    selection = Selection(profile="paper", protocol=protocol, only={"row": "fediod"})
    cell = expand(*registry.find_table("fediod/table3"), selection)[0]
    own = "fediod-segmentation."
    return {
        name.removeprefix(own): value
        for name, value in dict(cell.config).items()
        if name.startswith(own)
    }


RELEASED = {
    **dict(settings("released").items() - settings("paper").items()),
    "generator": "resnet-generator-bn-narrow",
}
"""What the authors' code sets otherwise, with a narrow generator of its form."""
