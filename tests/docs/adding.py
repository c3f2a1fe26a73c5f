"""The code that the pages on adding a method, and on adding data, show."""

import re

from fedtables.results.sourcecode import ROOT

PAGES = [ROOT / "docs" / "howto" / f"add-{what}.md" for what in ("a-method", "data")]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
]


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
