"""Networks: the same start for all, heads and modules by their streams, checkpoints and back."""

import pytest
import torch

from fedtables.federation.cache import content_digest
from fedtables.federation.costs import Meter, metering
from fedtables.federation.inside.networks import HeterogeneousClientsError
from fedtables.federation.seeds import Seeds
from fedtables.federation.tasks.pixels import Segmentation
from tests.federation.tiny import CLASSES, make_client, make_federation
from tests.methods.shards import same_bits


@pytest.fixture(scope="module")
def trained():
    """A federation and its clients' models; nothing below changes them."""
    federation = make_federation()
    return federation, federation.local_models()


def test_initial_weights_are_those_of_all_parties_and_follow_the_weights_axis_and_no_other():
    def initial(**axes):
        return make_federation(seeds=Seeds(**axes)).networks.initial("cnn-small").state_dict()

    assert same_bits(initial(), initial(partition=1, shuffling=1, sampling=1, attack=1))
    assert not same_bits(initial(), initial(weights=1))


def test_a_checkpoint_survives_the_round_trip_to_a_module(trained):
    federation, [model, _] = trained
    module = federation.networks.module(model)
    assert same_bits(dict(module.state_dict()), model.state)
    assert not module.training
    again = federation.networks.checkpoint(module, model.network, model.owner)
    assert same_bits(again.state, model.state)
    assert (again.network, again.outputs, again.owner) == (model.network, CLASSES, "client-0")
    assert federation.networks.checkpoint(module, model.network).owner == "server"


def test_a_checkpoint_does_not_change_with_the_module_it_was_taken_from():
    federation = make_federation()
    module = federation.networks.initial("cnn-small")
    checkpoint = federation.networks.checkpoint(module, "cnn-small")
    before = content_digest(checkpoint.state)
    with torch.no_grad():
        module.head.bias.add_(1)
    assert content_digest(checkpoint.state) == before
    assert federation.networks.checkpoint(module, "cnn-small").lineage != checkpoint.lineage


def test_a_new_head_is_named_by_its_stream_and_leaves_the_body():
    federation = make_federation()

    def state(*names):
        return dict(
            federation.networks.replace_head(
                federation.networks.initial("cnn-small"), 1, *names
            ).state_dict()
        )

    assert same_bits(state("classifier", 0), state("classifier", 0))
    assert not torch.equal(
        state("classifier", 0)["head.weight"], state("classifier", 1)["head.weight"]
    )
    body = federation.networks.initial("cnn-small").state_dict()
    assert all(
        torch.equal(state("x")[name], body[name]) for name in body if not name.startswith("head.")
    )


def test_new_modules_follow_their_names_on_the_weights_axis_and_leave_the_global_state_alone():
    def weight(*names, **axes):
        return (
            make_federation(seeds=Seeds(**axes))
            .networks.new_module(lambda: torch.nn.Linear(3, 2), *names)
            .weight.tolist()
        )

    before = torch.random.get_rng_state()
    assert weight("critic", 1) == weight("critic", 1) == weight("critic", 1, shuffling=3)
    assert weight("critic", 1) != weight("critic", 2)
    assert weight("critic", 1) != weight("critic", 1, weights=3)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "resnet8-narrow"},
        {"clients": [make_client(0), make_client(1, network="resnet8-narrow")]},
    ],
    ids=["server", "client"],
)
def test_different_networks_are_named_to_a_method_that_averages_them(changes):
    with pytest.raises(
        HeterogeneousClientsError,
        match=r"here are cnn-small, resnet8-narrow\. Use a model-agnostic method",
    ):
        make_federation(**changes).networks.shared()


def test_planned_modules_do_not_change_the_shared_network():
    federation = make_federation(
        device="meta", clients=[make_client(0, network="cnn", device="meta")]
    )
    with metering(Meter()):
        [model] = federation.local_models()
    federation.networks.module(model).requires_grad_(False)
    assert all(
        parameter.requires_grad for parameter in federation.networks.initial("cnn").parameters()
    )


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(
    ("network", "shape"), [("unet-narrow-3d", (1, 8, 8, 16)), ("cnn-small+dense", (1, 8, 16))]
)
def test_networks_take_volumes_and_sides_that_differ(network, shape, device):
    federation = make_federation(
        network=network, image_shape=shape, task=Segmentation(2), device=device
    )
    model = federation.networks.initial()
    samples = torch.zeros(3, *shape, device=device)
    assert model(samples).shape == (3, 2, *shape[1:])
    assert federation.networks.module(federation.networks.checkpoint(model))(samples).shape == (
        3,
        2,
        *shape[1:],
    )
