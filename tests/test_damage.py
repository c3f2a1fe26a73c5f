"""Damaged files are refused in one line that names them, or computed again, and never read as what
they are not. `python -m tests.damage` tries more of each kind.
"""

import random
from collections import Counter

import pytest

from tests.damage import AGAIN, KINDS, REFUSED, damages


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_damage_passes_for_another_content(kind):
    counts = Counter(damages(kind, 25, random.Random(1)))
    assert counts[AGAIN if kind.cache else REFUSED] > 10
    assert not counts[REFUSED if kind.cache else AGAIN]
