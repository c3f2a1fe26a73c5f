"""An interrupted fit of any method with rounds goes on after its last snapshot, and ends as if
nothing had happened.
"""

import pytest
import torch

from federation.snapshots import Snapshots
from tests.methods.every_method import METHODS, federation_of
from tests.methods.shards import same_bits


class PowerCutError(Exception):
    """Not a bug."""


def fit(method, folder=None, cut=False):
    """The outcome and the federation of a fit with four rounds; with `cut` it stops before the
    third.
    """

    def progress(text, share):
        if cut and text.startswith("round 3/"):
            raise PowerCutError

    federation = federation_of(method, progress)
    if folder is not None:
        federation.stages.snapshots = Snapshots(folder / "snapshot", every=0)
    return method.fit(federation), federation


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_fit_cut_off_after_two_rounds_ends_like_one_that_was_not(method, tmp_path):
    whole, undisturbed = fit(method)
    with pytest.raises(PowerCutError):
        fit(method, tmp_path, cut=True)
    resumed, federation = fit(method, tmp_path)
    assert same_bits(resumed.state, whole.state)
    assert resumed.history == whole.history
    assert federation.channel.ledger == undisturbed.channel.ledger
    if whole.samples is not None:
        assert torch.equal(resumed.samples, whole.samples)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_resumed_fit_does_not_start_again(method, tmp_path):
    with pytest.raises(PowerCutError):
        fit(method, tmp_path, cut=True)
    rounds = []

    def progress(text, share):
        if text.startswith("round "):
            rounds.append(text)

    federation = federation_of(method, progress)
    federation.stages.snapshots = Snapshots(tmp_path / "snapshot", every=0)
    method.fit(federation)
    assert rounds == ["round 3/4", "round 4/4"]
