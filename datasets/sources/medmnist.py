"""The 2-D sets of MedMNIST v2 (Yang et al. 2023) at 28 x 28 pixels, each of one file `<name>.npz`.

Names, classes, sizes and MD5 are those of the package medmnist 3.0.2. A file has the arrays
`train_images`, `train_labels` and, for `val` and `test`, the same; images are (n, 28, 28), or (n,
28, 28, 3) in colour. Networks see (pixel - 0.5) / 0.5, as in MedMNIST's own examples, for no file
but PneumoniaMNIST's was at hand to measure.

PneumoniaMNIST stands in for FedAD's public films (`rsna.py`): its histograms are equalised and its
mean and deviation are those of the other films. The reference's blur, which belongs to films of
some thousand pixels, would here be as wide as a rib and is left out. ChestMNIST has findings, of
which a film may have any number; its class is whether it has one.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedtables.datasets import films
from fedtables.datasets.fetching import Download, fetch_all
from fedtables.datasets.folders import one_file, reading
from fedtables.datasets.npz import described, read_arrays
from fedtables.datasets.source import (
    FINDINGS,
    Annotation,
    DataSource,
    Split,
    said,
    to_nchw,
    whole_numbers,
)

SIZE = 28
SPLITS = {"train": "train", "valid": "val", "test": "test"}
"""By the name here, what MedMNIST calls it."""
RELEASE = "https://zenodo.org/records/10519652/files"
PNEUMONIA, CHEST = "pneumoniamnist", "chestmnist"


@dataclass(frozen=True)
class Facts:
    """What MedMNIST says of a set."""

    title: str
    md5: str
    channels: int
    sizes: tuple[int, int, int]
    """Of the splits, in the order of `SPLITS`."""
    classes: str
    """Separated by semicolons; the findings of ChestMNIST."""
    shows: str
    """What its images are, for readers of tables."""
    licence: str = ""
    """Where it is not MedMNIST's usual one."""

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, or findings."""
        return tuple(self.classes.split("; "))


_ORGANS = (
    "bladder; femur-left; femur-right; heart; kidney-left; kidney-right; liver; lung-left;"
    " lung-right; pancreas; spleen"
)
_SLICES = "CT slices through organs; each split is of other scans"
FACTS = {
    "pathmnist": Facts(
        "PathMNIST",
        "a8b06965200029087d5bd730944a56c1",
        3,
        (89_996, 10_004, 7_180),
        "adipose; background; debris; lymphocytes; mucus; smooth muscle; normal colon mucosa;"
        " cancer-associated stroma; colorectal adenocarcinoma epithelium",
        "stained tissue of the bowel; the test split is of another hospital",
    ),
    CHEST: Facts(
        "ChestMNIST",
        "02c8a6516a18b556561a56cbdd36c4a8",
        1,
        (78_468, 11_219, 22_433),
        "atelectasis; cardiomegaly; effusion; infiltration; mass; nodule; pneumonia; pneumothorax;"
        " consolidation; edema; emphysema; fibrosis; pleural-thickening; hernia",
        "the films of NIH ChestX-ray14, without patients' numbers",
    ),
    "dermamnist": Facts(
        "DermaMNIST",
        "0744692d530f8e62ec473284d019b0c7",
        3,
        (7_007, 1_003, 2_005),
        "actinic keratoses and intraepithelial carcinoma; basal cell carcinoma; benign"
        " keratosis-like lesions; dermatofibroma; melanoma; melanocytic nevi; vascular lesions",
        "photographs of skin lesions; some lesions have several, perhaps in two splits",
        "CC BY-NC 4.0 (MedMNIST v2; HAM10000): not for commercial use",
    ),
    "octmnist": Facts(
        "OCTMNIST",
        "c68d92d5b585d8d81f7112f81e2d0842",
        1,
        (97_477, 10_832, 1_000),
        "choroidal neovascularization; diabetic macular edema; drusen; normal",
        "optical coherence tomography of retinas",
    ),
    PNEUMONIA: Facts(
        "PneumoniaMNIST",
        "28209eda62fecd6e6a2d98b1501bb15f",
        1,
        (4_708, 524, 624),
        "normal; pneumonia",
        "films of children of one to five years, histograms equalised",
        "CC BY 4.0 (MedMNIST v2; films of Kermany et al. 2018)",
    ),
    "retinamnist": Facts(
        "RetinaMNIST",
        "bd4c0672f1bba3e3a89f0e4e876791e4",
        3,
        (1_080, 120, 400),
        "0; 1; 2; 3; 4",
        "photographs of retinas; classes are grades of diabetic retinopathy",
    ),
    "breastmnist": Facts(
        "BreastMNIST",
        "750601b1f35ba3300ea97c75c52ff8f6",
        1,
        (546, 78, 156),
        "malignant; normal, benign",
        "ultrasound images of breasts",
    ),
    "bloodmnist": Facts(
        "BloodMNIST",
        "7053d0359d879ad8a5505303e11de1dc",
        3,
        (11_959, 1_712, 3_421),
        "basophil; eosinophil; erythroblast; immature granulocyte; lymphocyte; monocyte;"
        " neutrophil; platelet",
        "single blood cells",
    ),
    "tissuemnist": Facts(
        "TissueMNIST",
        "ebe78ee8b05294063de985d821c1c34b",
        1,
        (165_466, 23_640, 47_280),
        "collecting duct, connecting tubule; distal convoluted tubule; glomerular endothelial"
        " cells; interstitial endothelial cells; leukocytes; podocytes; proximal tubule segments;"
        " thick ascending limb",
        "single cells of the kidney cortex",
    ),
    "organamnist": Facts(
        "OrganAMNIST",
        "68e3f8846a6bd62f0c9bf841c0d9eacc",
        1,
        (34_561, 6_491, 17_778),
        _ORGANS,
        f"axial {_SLICES}",
    ),
    "organcmnist": Facts(
        "OrganCMNIST",
        "b9ceb9546e10131b32923c5bbeaea2b1",
        1,
        (12_975, 2_392, 8_216),
        _ORGANS,
        f"coronal {_SLICES}",
    ),
    "organsmnist": Facts(
        "OrganSMNIST",
        "9ab87b696fb54e2a387ebe992d6ed5f1",
        1,
        (13_932, 2_452, 8_827),
        _ORGANS,
        f"sagittal {_SLICES}",
    ),
}
STAND_INS = {
    PNEUMONIA: ("phantom-films-public",),
    CHEST: ("nih-cxr14-sample", "phantom-films"),
}
"""Of the others generated shapes, with as many classes."""


def _split(name: str, raw: np.ndarray, labels: np.ndarray) -> Split:
    """A split of a set as MedMNIST has it. Raises ValueError for pixels that are no bytes."""
    if raw.dtype != np.uint8:
        raise ValueError(f"images are {raw.dtype}, not uint8")
    if name == CHEST:
        if not ((labels == 0) | (labels == 1)).all():
            raise ValueError("a finding is neither 0 nor 1")
        findings = labels.astype(np.uint8)
        some = np.asarray(labels.any(axis=1), np.int64)
        return Split(to_nchw(raw), some, {"findings": findings})
    labels = labels.reshape(-1)
    if name != PNEUMONIA:
        return Split(to_nchw(raw), labels)
    images = np.stack([films.equalise(film) for film in raw])[:, None]
    return Split(images, labels, {"findings": labels[:, None].astype(np.uint8)})


def _texts(name: str, facts: Facts) -> dict[str, Any]:
    """What people read of a set."""
    texts = said("medmnist")
    return {
        "name": name,
        "title": facts.title,
        "licence": facts.licence or texts["licence"],
        "how_to_get": texts["how_to_get"].format(name=name, release=RELEASE),
        "note": f"{facts.shows}, at {SIZE} x {SIZE} pixels",
    }


def _source(name: str, facts: Facts) -> DataSource:
    files = one_file(f"{name}.npz")
    pixels = (SIZE, SIZE) if facts.channels == 1 else (SIZE, SIZE, facts.channels)
    columns = len(facts.names) if name == CHEST else 1
    wanted = {
        f"{stored}_{what}": meaning
        for stored in SPLITS.values()
        for what, meaning in (
            ("images", f"uint8 (n, {', '.join(map(str, pixels))})"),
            ("labels", f"whole numbers (n, {columns})"),
        )
    }

    def load(home: Path) -> dict[str, Split]:
        path = files(home)[0]
        arrays, splits = read_arrays(path, wanted), {}
        with reading(path, f"a MedMNIST file. {described(wanted)}"):
            for split, stored in SPLITS.items():
                labels = whole_numbers(arrays[f"{stored}_labels"], f"{path}: {stored}_labels")
                splits[split] = _split(name, arrays[f"{stored}_images"], labels)
        return splits

    grey = (0.5,) * facts.channels
    mean, std = (films.MEAN, films.STD) if name == PNEUMONIA else (grey, grey)
    shown = facts.names if name == CHEST else ("pneumonia",)
    shapes = f"shapes-{len(facts.names)}{'-grey' * (facts.channels == 1)}"
    release = Download(f"{RELEASE}/{name}.npz", "", md5=facts.md5)
    return DataSource(
        **_texts(name, facts),
        classes=2 if name == CHEST else len(facts.names),
        shape=(facts.channels, SIZE, SIZE),
        sizes=dict(zip(SPLITS, facts.sizes, strict=True)),
        mean=mean,
        std=std,
        files=files,
        load=load,
        download=lambda home: fetch_all([release], home),
        stand_ins=STAND_INS.get(name, (shapes,)),
        annotations=_found(shown) if name in (PNEUMONIA, CHEST) else {},
        class_names=() if name == CHEST else facts.names,
    )


def _found(names: tuple[str, ...]) -> dict[str, Annotation]:
    """The annotation of films with these findings."""
    meaning = "pneumonia or a normal film" if len(names) == 1 else "the text-mined findings"
    return {"findings": Annotation(FINDINGS, len(names), meaning, names)}


SOURCES = [_source(name, facts) for name, facts in FACTS.items()]
