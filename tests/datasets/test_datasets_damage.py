"""Data sets that must be real and whole: `--require-real`, damage and identity."""

import numpy as np
import pytest

from fedtables.datasets.catalogue import load, resolve
from fedtables.datasets.source import DataError
from tests.datasets.npz import write_npz

pytestmark = pytest.mark.usefixtures("every_content_known")


# -- --require-real --


def test_require_real_refuses_a_stand_in_and_says_how_to_get_the_data(tmp_path):
    with pytest.raises(
        DataError,
        match=(
            r"MNIST is needed, but it is not under .* Run `fedtables data --download"
            r" mnist`"
        ),
    ):
        resolve("mnist", require_real=True, home=tmp_path)


def test_require_real_accepts_the_real_set(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    assert resolve("mnist", require_real=True, home=tmp_path).origin == "real"
    assert resolve("digits", require_real=True, home=tmp_path).origin == "real"


def test_require_real_refuses_a_synthetic_set_even_if_it_was_asked_for(tmp_path):
    with pytest.raises(DataError, match="--require-real"):
        resolve("shapes", require_real=True, home=tmp_path)


def test_require_real_refuses_the_embedded_data_of_the_smoke_profile(tmp_path):
    write_npz(tmp_path, "mnist", 28)
    with pytest.raises(
        DataError, match="this profile always uses embedded data; take --profile cpu, gpu or paper"
    ):
        resolve("mnist", embedded=True, require_real=True, home=tmp_path)


# -- damage and identity --


@pytest.mark.parametrize(("side", "label"), [(8, 0), (28, 10)])
def test_a_set_of_the_right_size_with_other_images_or_labels_is_refused(tmp_path, side, label):
    images, labels = np.zeros((60_000, side, side), np.uint8), np.full(60_000, label)
    np.savez_compressed(
        tmp_path / "mnist.npz",
        x_train=images,
        y_train=labels,
        x_test=images[:10_000],
        y_test=labels[:10_000],
    )
    with pytest.raises(DataError, match="not the official ones"):
        load("mnist", tmp_path)


def test_a_set_of_samples_in_another_dtype_than_it_states_is_refused(tmp_path):
    images = np.zeros((60_000, 28, 28), np.float32)
    np.savez_compressed(
        tmp_path / "mnist.npz",
        x_train=images,
        y_train=np.zeros(60_000, np.uint8),
        x_test=images[:10_000],
        y_test=np.ones(10_000),
    )
    with pytest.raises(DataError, match=r"MNIST: samples are float32 in .*, expected uint8\."):
        load("mnist", tmp_path)
