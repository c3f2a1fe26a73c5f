"""Methods that cheat by what is closed to them: data sets, test set, files, memory, processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import torch
import torch.nn.functional as F

from datasets import catalogue
from federation.method import Method
from tests.benchmarks.contract.cheats import learn


class TestSplit(Method):
    """Loads the test split."""

    def fit(self, federation):
        test = catalogue.load("digits")["test"]
        return learn(federation, torch.from_numpy(test.images), torch.from_numpy(test.labels))


class Quietly(Method):
    """The same, and hides that it was refused."""

    def fit(self, federation):
        from sklearn.datasets import load_digits

        try:
            load_digits()
        except Exception:
            return federation.networks.initial()
        return federation.networks.initial()


class FromDisk(Method):
    """Reads the same digits by another library."""

    def fit(self, federation):
        from sklearn.datasets import load_digits

        digits = load_digits()
        images = torch.from_numpy(digits.images * 15).to(torch.uint8)[:, None]
        return learn(federation, images, torch.from_numpy(digits.target))


class FromMemory(Method):
    """Searches the process for arrays."""

    def fit(self, federation):
        found = [kept for kept in gc.get_objects() if isinstance(kept, torch.Tensor)]
        assert found
        return federation.networks.initial()


class Elsewhere(Method):
    """Has another process do it."""

    def fit(self, federation):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        return federation.networks.initial()


class TestSet(Method):
    """Trains on the test set that measures are given."""

    def fit(self, federation):
        test = federation.evaluation.test_set
        return learn(federation, test.images, test.targets)


class TestImages(Method):
    """Learns the test images with labels of its own, past the property."""

    def fit(self, federation):
        images = federation.evaluation._held.test.images
        return learn(federation, images, images.flatten(1).sum(dim=1).long() % 10)


class TestMetrics(Method):
    """Weighs every client's model by how good it is on the test set, and keeps the best."""

    def fit(self, federation):
        models = [federation.networks.module(own) for own in federation.local_models()]
        scores = [federation.evaluation.test(model)["accuracy"] for model in models]
        for model, score in zip(models, scores, strict=True):
            model.get_parameter(next(n for n, _ in model.named_parameters())).data.mul_(1 + score)
        return models[scores.index(max(scores))]


class PublicLabels(Method):
    """Takes the public set's labels past the oracle."""

    def fit(self, federation):
        labels = federation.evaluation._held.oracle_labels
        return federation.distill(F.one_hot(labels, 10).float())


# -- ends --


class Exits(Method):
    """Ends the process politely."""

    def fit(self, federation):
        sys.exit(0)


class Dies(Method):
    """Ends the process at once."""

    def fit(self, federation):
        os._exit(0)
