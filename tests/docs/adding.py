"""The code that docs/howto/add-a-method.md shows."""

import re

from fedtables.results.sourcecode import ROOT

BLOCKS = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "add-a-method.md").read_text(), re.DOTALL
)


def block_with(text: str) -> str:
    """The one block of Python that holds `text`."""
    [block] = [block for block in BLOCKS if text in block]
    return block


NETWORK = block_with("NETWORKS = ")
"""The network: the file `my_net.py`."""
DATA = block_with("SOURCES = ")
"""The data set: the file `my_data.py`."""
DERIVED = block_with("class Damped(FedAvg)")
"""The method that derives from FedAvg: the file `damped.py`."""
