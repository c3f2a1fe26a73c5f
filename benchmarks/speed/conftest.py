"""Workers run with one thread each, and so do these."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """One thread for the time of a benchmark."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
