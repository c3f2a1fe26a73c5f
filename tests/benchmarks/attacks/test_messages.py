"""The command `attack`: images behind a gradient come back, with numbers and a picture; what cannot
be done is said.
"""

import csv
import functools
import json
import re

import numpy as np
import pytest
import torch

from fedtables.benchmarks.attacks import targets
from fedtables.benchmarks.attacks.answers import Inquiry
from fedtables.benchmarks.attacks.messages import Case
from fedtables.benchmarks.attacks.reconstruction import Attacked, to_units
from fedtables.benchmarks.attacks.targets import fediod, fedkd
from fedtables.datasets import catalogue
from fedtables.federation.training.inputs import Normalisation, unit_range
from fedtables.methods.fediod import FedIOD
from fedtables.models.catalogue import build
from fedtables.privacy.attacks import gradients
from fedtables.privacy.attacks.gradients import Attack
from fedtables.privacy.attacks.matching import ReconstructedImages
from fedtables.privacy.attacks.threat import ThreatModel


def lines(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def only(folder, suffix):
    (path,) = folder.glob(f"attack/*.{suffix}")
    return path


# -- the command --


@pytest.fixture(scope="module")
def attacked(tmp_path_factory, module_command):
    """Three digits behind a gradient each, by two processes, and the same by one that knows nothing
    of the other's.
    """
    folder = tmp_path_factory.mktemp("attack")
    found = []
    for jobs in ("2", "1"):
        where = {"FEDTABLES_CACHE": str(folder / "cache" / jobs)}
        options = f"attack --images 3 --jobs {jobs} --results {folder / jobs}"
        done = module_command(*options.split(), **where)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    return folder, found


def test_digits_come_back_from_their_gradients(attacked):
    folder, (printed, _) = attacked
    found = lines(only(folder / "2", "csv"))
    assert len(found) == 3
    for line in found:
        assert (line["success"], line["recovered_label"]) == ("yes", line["label"])
        assert float(line["psnr"]) > 30
        assert float(line["distance"]) <= 1e-8
        assert line["ssim"] == ""  # 8 x 8 pixels are fewer than its window
    assert re.findall(r"^attacked \((\d) of 3\)$", printed, re.MULTILINE) == ["1", "2", "3"]
    assert "3 of 3 images recovered above 30 dB" in printed
    assert "scikit-learn digits (real)" in printed


def test_record_and_picture_lie_beside_the_numbers(attacked):
    folder = attacked[0] / "2"
    record = json.loads(only(folder, "json").read_text())
    assert record["data"]["origin"] == "real"
    assert record["attack"]["threat"]["shares"] == "gradient"
    assert (record["attack"]["iterations"], record["recovered"], record["image_size"]) == (
        300,
        3,
        8,
    )
    assert "seconds" not in only(folder, "csv").read_text()
    assert only(folder, "png").read_bytes().startswith(b"\x89PNG")


def test_the_number_of_processes_changes_nothing(attacked):
    folder = attacked[0]
    assert only(folder / "1", "csv").read_bytes() == only(folder / "2", "csv").read_bytes()


in_a_worker = functools.partial(pytest.param, marks=pytest.mark.slow)  # which has to be started


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--attack dgl", "--attack dgl: no such value"),
        ("--network lenet", "unknown network 'lenet'.*lenet-sigmoid"),
        in_a_worker(
            "--attack idlg --batch-size 2", "iDLG reads the label off the gradient of one image"
        ),
        ("--local-steps 2", "several steps make an update"),
        ("--images 3 --batch-size 2", "3 images are not whole messages of 2"),
        ("--images 1000000", "1000000 images are more than the 1437"),
        ("--target fedkd --samples 1000000", "of each of 5 clients are more than the 1437"),
        ("--target fedkd --batch-size 2", "with one dummy image, not 2"),
    ],
)
def test_what_cannot_be_attacked_is_said(command, tmp_path, options, why):
    refused(command, tmp_path, options, why)


def refused(command, tmp_path, options, why):
    """The command with these options says why not, and leaves nothing."""
    results = tmp_path / "results"
    done = command("attack", *options.split(), "--jobs", "1", "--results", str(results))
    assert done.returncode == 2
    assert re.search(why, done.stderr), done.stderr
    assert not results.exists()


OF_SHARES = {
    "--attack": "dlg",
    "--images": "10",
    "--shares": "gradient",
    "--normalise": None,
    "--device": "cpu",
}
OF_ANSWERS = {"--clients": "5", "--samples": "200", "--epochs": "50"}


@pytest.mark.parametrize(
    ("target", "own", "others"),
    [
        ("fedavg", OF_SHARES, OF_ANSWERS),
        *((name, OF_ANSWERS, OF_SHARES) for name in targets.names()),
    ],
)
def test_options_that_do_nothing_with_a_target_are_refused_by_name(
    command, tmp_path, target, own, others
):
    given = " ".join(f"{name} {value or ''}" for name, value in others.items())
    why = f"{', '.join(others)}: --target {target} has no such option; its own are {', '.join(own)}"
    refused(command, tmp_path, f"--target {target} {given}", why)


# -- one message --

NORMALISE = Normalisation((0.3,), (0.4,))


@pytest.fixture(scope="module")
def digits():
    train = catalogue.load("digits")["train"]
    return torch.from_numpy(train.images), torch.from_numpy(train.labels)


def network(name):
    torch.manual_seed(0)
    return build(name, 1, 10, 8)


def recovered(digits, name, wanted):
    images, targets = (part[: wanted.threat.batch_size] for part in digits)
    start = torch.Generator().manual_seed(0)
    victim = Attacked(name, network(name), 10, wanted, NORMALISE, lambda first: start)
    found = victim.message(images, targets, 0)
    return found, (found.images - unit_range(images)).square().mean(dim=(1, 2, 3))


def test_units_are_those_before_normalisation_and_clamped():
    images = torch.tensor([-2.0, -0.75, 0.5, 9.0]).reshape(1, 1, 2, 2)
    assert to_units(images, NORMALISE).flatten().tolist() == pytest.approx([0.0, 0.0, 0.5, 1.0])


def test_two_images_behind_one_gradient_are_put_in_the_order_of_the_true_ones(digits, monkeypatch):
    def finds_them_the_other_way_round(message, search):
        images = NORMALISE(unit_range(digits[0][:2])).double()
        labels = torch.nn.functional.one_hot(digits[1][:2], 10)
        return ReconstructedImages(images.flip(0), labels.flip(0), 0.0)

    monkeypatch.setattr(gradients, "deep_leakage", finds_them_the_other_way_round)
    found, errors = recovered(digits, "lenet-sigmoid", Attack("dlg", ThreatModel(batch_size=2)))
    assert (errors < 1e-10).all()
    assert torch.equal(found.labels.argmax(dim=1), digits[1][:2])


# -- answers --


@pytest.mark.parametrize("target", targets.names())
def test_answers_of_trained_clients_are_attacked_and_both_numbers_said(target, command, tmp_path):
    sizes = "--clients 2 --samples 60 --epochs 3 --iterations 2 --restarts 1 --jobs 1"
    done = command("attack", "--target", target, *sizes.split(), "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = lines(only(tmp_path, "csv"))
    assert [line["client"] for line in found] == ["1", "2"]
    assert sum(int(line["samples"]) for line in found) == 120
    for line in found:
        assert 0 < float(line["distance"]) < 2
        assert (line["nearer"] == "yes") == (float(line["psnr"]) > float(line["psnr_mean_image"]))
    assert "dB to the nearest private image, the public set's mean image" in done.stdout
    assert "bounds no other" in done.stdout
    assert only(tmp_path, "png").read_bytes().startswith(b"\x89PNG")


def seen_of_one_image(method, observe):
    """What an attacker sees of one client of one image, after one step of training, and the image
    (1, 1, 8, 8), normalised, with its target (1,).
    """
    inquiry = Inquiry(
        catalogue.resolve("digits"),
        method,
        clients=1,
        samples=1,
        public=20,
        epochs=1,
        threat=ThreatModel("update", local_lr=0.05),
    )
    federation = inquiry.federation()
    (client,) = federation.clients
    images, targets = client.run(
        lambda shard: (federation.normalise(unit_range(shard.images)), shard.targets)
    )
    return observe(inquiry, federation, client), images, targets


def test_a_dummy_that_is_the_clients_only_image_answers_as_the_client_did():
    """One client of one image, one step of training: what the attacker computes of the truth is
    what it saw.
    """
    seen, images, targets = seen_of_one_image("fedkd", fedkd.observe)
    labels = torch.nn.functional.one_hot(targets, 10).double()
    truth = seen.answer(images.double(), labels)[0].detach()
    # Weight decay, which the attacker leaves out, moves each weight by 0.05 * 3e-4 of itself.
    assert float((truth - seen.answers[0]).norm() / seen.answers[0].norm()) < 0.02
    other = seen.answer(1 - images.double(), labels.roll(1, dims=1))[0].detach()
    assert float((other - seen.answers[0]).norm() / seen.answers[0].norm()) > 0.5


def test_all_that_fediods_client_answers_follows_from_its_images():
    """The same with FedIOD: the mean score of its own images is exact, the rest within the
    simulated steps' tolerance.
    """
    seen, images, targets = seen_of_one_image("fediod", fediod.observe)
    truth = seen.answer(images.double(), torch.nn.functional.one_hot(targets, 10).double())
    logits, scores, own, gradient = (
        float(((a - b).norm() / b.norm()).detach())
        for a, b in zip(truth, seen.answers, strict=True)
    )
    assert own < 1e-5
    assert logits < 0.02
    assert scores < 1
    assert gradient < 1


@pytest.mark.parametrize("printed", [False, True])
def test_the_step_whose_answers_are_attacked_is_by_the_methods_own_loss(printed):
    """Without its other terms the server asks by L_mimic alone, which moves centred logits, or by
    Eq. 10 as printed logits as they are.
    """
    inquiry = Inquiry(
        catalogue.resolve("digits"), "fediod", clients=1, samples=4, public=20, epochs=1
    )
    federation = inquiry.federation()
    method = FedIOD(
        weights="size",
        temperature=0,
        confidence=0,
        uniqueness=0,
        batch_size=4,
        printed_mimic=printed,
    )
    seen = fediod.first_step(method, federation, federation.clients[0])
    asked, _ = seen.asked
    assert bool(asked.abs().max() > 1e-6)
    assert bool((asked.sum(dim=1).abs() < 1e-6).all()) is not printed


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"target": "fedmd"}, "unknown target 'fedmd'; known: fediod, fedkd"),
        ({"clients": 0}, "clients is a number from 1"),
        ({"image_size": -8}, "image_size is a number from 0"),
    ],
)
def test_sizes_of_an_inquiry_that_make_no_sense_are_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        Inquiry(**{"data": catalogue.resolve("digits"), "target": "fedkd", **changes})


def test_files_of_different_cases_have_different_names():
    data = catalogue.resolve("digits")
    cases = [
        Case(data, "lenet-sigmoid", Attack(restarts=n), images=2, seed=seed)
        for n in (1, 2)
        for seed in (0, 1)
    ]
    assert len({case.stem for case in cases}) == 4
    assert np.array_equal(cases[0].private()[0], cases[2].private()[0])
