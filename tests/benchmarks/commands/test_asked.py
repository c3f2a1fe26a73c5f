"""A device that is not there is refused, with the reason."""

import pytest
import torch

from fedtables.benchmarks.commands import asked
from fedtables.benchmarks.tables.spec import SpecError

NVIDIA = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.12  Release Build"


@pytest.mark.parametrize(
    ("cuda", "driver", "visible", "why"),
    [
        (None, NVIDIA, "0", r"PyTorch .* is a build without CUDA"),
        ("13.0", None, "0", r"PyTorch .* finds no NVIDIA driver"),
        ("13.0", NVIDIA, "0", r"needs a driver for CUDA 13\.0, and driver 535\.104\.12 is install"),
        ("13.0", "as nobody expects", "0", r"driver of an unknown version is installed"),
        ("13.0", NVIDIA, "", r"CUDA_VISIBLE_DEVICES hides all"),
    ],
)
def test_without_cuda_the_message_names_what_may_be_wrong(
    monkeypatch, tmp_path, cuda, driver, visible, why
):
    file = tmp_path / "version"
    if driver is not None:
        file.write_text(driver)
    monkeypatch.setattr(asked, "DRIVER", file)
    monkeypatch.setattr(torch.version, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(SpecError, match=rf"no usable CUDA device \(.*{why}.*use --device cpu"):
        asked.check_device("cuda")
