"""The meter: work counted by hand, and none of it done."""

import pytest
import torch
from torch import nn

from fedtables.baselines.fedkd_gong import FedKDGong
from fedtables.federation.channel import Channel, Transfer, encoded_size
from fedtables.federation.costs import Meter, Work, Workload, metering
from fedtables.federation.data import PublicData
from fedtables.federation.fitting import fit
from fedtables.federation.memory import Memory
from fedtables.federation.training.inputs import Normalisation
from fedtables.federation.training.loops import predict
from fedtables.federation.windows import Window
from fedtables.methods.fedavg import FedAvg
from fedtables.methods.fediod import FedIOD
from tests.federation.tiny import make_client, make_federation

PLAIN = Normalisation((0.0,) * 3, (1.0,) * 3)


def linear():
    """12 inputs, 5 outputs: 2 x 12 x 5 = 120 FLOPs for a sample."""
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 5)).to("meta")


def images(count, side=2, channels=3):
    return torch.empty(count, channels, side, side, dtype=torch.uint8, device="meta")


def test_predicting_with_a_linear_layer_costs_two_operations_per_weight_and_sample():
    meter = Meter()
    outputs = meter.book_prediction(linear(), images(7))
    assert (meter.work.flops, meter.work.predicted_samples, meter.work.training_samples) == (
        7 * 120,
        7,
        0,
    )
    assert (outputs.shape, outputs.is_meta) == ((7, 5), True)


def test_training_costs_three_forward_passes_per_sample_and_epoch():
    meter = Meter()
    meter.book_training(linear(), images(10), epochs=4, batch_size=5)
    assert (meter.work.flops, meter.work.training_samples, meter.work.predicted_samples) == (
        3 * 120 * 10 * 4,
        40,
        0,
    )


def test_a_convolution_costs_two_operations_per_weight_and_output_pixel():
    meter = Meter()
    meter.book_prediction(nn.Conv2d(3, 8, 3, padding=1, bias=False).to("meta"), images(1, side=6))
    assert meter.work.flops == 2 * (3 * 3 * 3) * 8 * 36


def test_peak_memory_is_four_times_the_weights_and_the_activations_of_a_batch():
    meter = Meter()
    meter.book_training(linear(), images(10), epochs=1, batch_size=4)
    weights, activations = 4 * (12 * 5 + 5), 4 * (12 + 5)
    assert meter.peak_bytes == 4 * weights + 4 * activations + 10 * 12


def test_memory_is_what_is_kept_at_one_time_answers_among_it():
    meter, weight = Meter(), torch.ones(5, device="meta", requires_grad=True)
    with metering(meter):
        answers = predict(linear(), images(10), normalise=PLAIN)  # 10 x 5 of four bytes
        with meter.counted():
            for _ in range(2):
                (weight * weight).sum().backward()  # keeps 20 bytes, which it knows twice
    assert meter.memory == Memory(200 + 20)
    assert meter.peak_bytes == 2 * 2 * 20
    del answers
    meter.need(Memory(230, 7))
    assert meter.memory == Memory(230, 7)


def test_answers_are_counted_once_as_long_as_a_view_of_them_is_kept():
    meter = Meter()
    answers = meter.keep(torch.empty(10, 5, device="meta"))
    view = answers[:2]
    del answers
    assert meter.answers.now == Memory(200)
    meter.keep(view, Memory(0, view.nbytes))
    assert meter.answers.now == Memory(0, 40)
    del view
    assert meter.answers.now == Memory()


def test_patches_are_counted_where_samples_lie_and_once():
    public = PublicData(images(2, side=4), "", Window((2, 2)))  # four patches of 2 x 2 an image
    for on_host, held in ((False, Memory(2 * 4 * 12)), (True, Memory(0, 2 * 4 * 12))):
        meter = Meter()
        meter.on_host = on_host
        with metering(meter):
            cut = public.cut(public.images)
        assert (len(cut), meter.answers.now) == (8, held)
        meter.book_training(linear(), cut, epochs=1, batch_size=1)
        weights, activations = 4 * (12 * 5 + 5), 4 * (12 + 5)
        assert meter.memory == held + Memory(4 * weights + activations)


def test_copies_of_samples_that_stay_on_the_host_take_none_of_a_devices_memory():
    meter = Meter()
    meter.on_host = True
    meter.book_training(linear(), images(10), epochs=1, batch_size=4)
    assert meter.memory == Memory(meter.peak_bytes - 10 * 12, 10 * 12)


# -- repetition --


def test_what_is_repeated_counts_as_often_as_it_would_be_done():
    meter, channel = Meter(), Channel()
    size = encoded_size({"x": torch.empty(3)})
    with metering(meter), meter.repeated(4):
        meter.book_prediction(linear(), images(7))
        meter.book_training(linear(), images(10), epochs=2, batch_size=5)
        for _ in range(2):
            channel.up(1, "logits", {"x": torch.empty(3, device="meta")})
    assert meter.work.flops == 4 * (120 * 7 + 3 * 120 * 20)
    assert (meter.work.predicted_samples, meter.work.training_samples) == (28, 80)
    assert channel.ledger == [Transfer(0, "up", "logits", 1, 4 * 2 * size, 8)]


def test_tensor_operations_of_a_repeated_step_are_counted_forward_and_backward():
    layer = nn.Linear(12, 5, device="meta")
    meter = Meter()
    with meter.repeated(6), meter.counted():
        layer(torch.empty(10, 12, device="meta")).sum().backward()
    # A product of 2 x 10 x 12 x 5 forward, one as large for the weights' gradient; inputs need
    # none.
    assert meter.work.flops == 6 * 2 * 1200


def test_a_steps_work_is_shared_among_its_networks_by_their_passes():
    learner, teacher = (nn.Linear(12, outputs, device="meta") for outputs in (1, 3))
    learner.built_as, teacher.built_as = ("a", 1, 1, (12,)), ("b", 1, 3, (12,))
    asked, other = nn.Linear(12, 5).requires_grad_(False), nn.Linear(12, 4)
    asked.built_as = "c", 1, 5, (12,)
    samples, meter = torch.empty(10, 12, device="meta", requires_grad=True), Meter()
    with meter.repeated(6), meter.counted():
        for network in (learner, asked.to("meta")):
            with meter.passing(network, samples):
                outputs = network(samples)
            outputs.sum().backward()
        with torch.no_grad(), meter.passing(teacher, samples):
            teacher(samples)
        other.to("meta")(samples).sum().backward()
    # Products of 2 x 10 x 12 = 240 for each output: three of the learner, its inputs' gradient
    # among them, two of what only passes gradients on, one of the teacher; the last is in no pass.
    assert meter.work.flops == 6 * 240 * (3 * 1 + 2 * 5 + 1 * 3 + 3 * 4)
    assert list(meter.work.shares) == [
        (Workload("a", (1, 12), 1, 10), False, 6 * 240 * 3),
        (Workload("b", (1, 12), 3, 10), False, 6 * 240 * 3),
        (Workload("c", (1, 12), 5, 10), False, 6 * 240 * 10),
    ]


def test_steps_within_steps_count_once():
    layer, meter = nn.Linear(12, 5, device="meta"), Meter()
    layer.built_as = "a", 1, 5, (12,)
    samples = torch.empty(10, 12, device="meta")
    with meter.repeated(2), meter.counted():
        with meter.passing(layer, samples):
            loss = layer(samples).sum()
        loss.backward()
        with meter.repeated(3), meter.counted(), torch.no_grad():
            layer(samples)
    assert meter.work.flops == 2 * (2 * 1200 + 3 * 1200)
    assert [flops for _, _, flops in meter.work.shares] == [2 * 2 * 1200]


def test_shares_of_work_add_up_by_network_and_way():
    load, other = Workload("small", (1, 2, 2), 3, 4), Workload("large", (1, 2, 2), 3, 4)
    one = Work(flops=9, shares=((other, False, 3), (load, True, 6)))
    two = Work(flops=4, shares=((load, False, 4),))
    both = ((other, False, 3), (load, False, 4), (load, True, 6))
    assert one + two == two + one == Work(flops=13, shares=both)
    assert one * 2 == one + one


@pytest.mark.parametrize("known", [False, True], ids=["new network", "known network"])
def test_a_prediction_within_counted_steps_is_booked_once(known):
    meter, model = Meter(), linear()
    with metering(meter):
        if known:
            predict(model, images(1), normalise=PLAIN)
        before = meter.work.flops
        with meter.repeated(3), meter.counted():
            predict(model, images(7), normalise=PLAIN)
    assert meter.work.flops - before == 3 * 7 * 120


# -- whole fits --


def clients_of(sizes, device):
    return [make_client(index, size, device) for index, size in enumerate(sizes)]


def ledgers(method, sizes=(12, 12), **changes):
    """The ledger of a run, that of its plan, and the plan's meter."""
    real = make_federation(clients=clients_of(sizes, "cpu"), **changes)
    fit(real, method)
    planned = make_federation(clients=clients_of(sizes, "meta"), device="meta", **changes)
    with metering(Meter()) as meter:
        fit(planned, method)
    return real.channel, planned.channel, meter


IOD = {"batch_size": 4, "latent": 5, "width": 4, "discriminator_width": 4, "samples": 3}


def test_a_plan_of_fedavg_counts_the_bytes_of_a_run_exactly_and_by_round():
    method = FedAvg(rounds=3, participation=0.5)
    real, planned, meter = ledgers(method, (12, 6, 9, 0))
    assert planned.ledger == real.ledger
    model = encoded_size(make_federation().networks.initial("cnn-small").state_dict())
    assert (planned.total("up"), planned.total("down")) == (3 * 2 * model, 3 * 2 * model)
    # the test set after every round, and once more by what is returned
    assert meter.work.predicted_samples == (3 + 1) * 6


PASSES = {
    "fedavg": (FedAvg(rounds=2, participation=1.0), 3 * 12 * 3 * 2 * 2, 0, 2 * 6),
    "fedkd": (FedKDGong(), 2 * (3 * 12 * 3 + 6), 3 * 6 * 2, 2 * 3 * 6 + 2 * 6),
    "fedkd, each epoch": (
        FedKDGong(multi_round=True),
        2 * (3 * 12 * 3 + 2 * 6),
        3 * 6 * 2,
        2 * 3 * 6 + 2 * 6,
    ),
}


@pytest.mark.parametrize(
    ("method", "clients", "server", "looks"), PASSES.values(), ids=PASSES.keys()
)
def test_work_is_its_partys_and_looks_are_nobodys(method, clients, server, looks):
    """In forward passes of the one network, of which a sample's training is three: two clients
    train on 12 images each for 3 epochs and answer for 6 public ones; a server's student has 2
    epochs; 6 test images are looked at after each epoch of a network by itself, and after a round.
    """
    one, federation = Meter(), make_federation(device="meta")
    one.book_prediction(federation.networks.initial(), torch.empty(1, 1, 8, 8, device="meta"))
    with metering(Meter()) as meter:
        method.fit(federation)
    work = meter.work
    passes = [flops / one.work.flops for flops in (work.client_flops, work.look_flops, work.flops)]
    assert passes == [clients, looks, clients + server + looks]


@pytest.mark.parametrize(
    ("method", "sizes"),
    [
        (FedIOD(epochs=3, **IOD), (12, 7)),
        (
            FedIOD(
                epochs=2, steps=3, student_steps=4, weights="class-count", optimizer="sgd", **IOD
            ),
            (12, 12),
        ),
        (FedIOD(epochs=2, steps=3, **IOD), (12, 0, 5)),
    ],
    ids=["steps by the largest client", "as released", "an empty client"],
)
def test_a_plan_of_fediod_counts_the_bytes_of_a_run_exactly(method, sizes):
    real, planned, _ = ledgers(method, sizes, network="resnet8-narrow")
    assert planned.by_kind() == real.by_kind()
    messages = [sum(t.messages for t in channel.ledger) for channel in (real, planned)]
    assert messages[0] == messages[1]
