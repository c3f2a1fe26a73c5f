"""FedAD: "Federated Learning with Privacy-Preserving Ensemble Attention Distillation" (Gong et al., IEEE TMI).

The tables of chest films, 1 to 4, and Figure 3; Table 5 is in `fedad_segmentation.py`, Tables 6 to 8 and Figure 4 are in
`fedad_reconstruction.py`. The authors released no code. Values marked `code` are those of the code that the paper names (jfhealthcare/Chexpert, its reference 59) or of a
comparator: FedDF (epfml), FedMD (diogenes0319).
"""

from functools import partial

from fedtables.benchmarks.papers import fedad_reconstruction, fedad_segmentation, shared
from fedtables.benchmarks.tables.spec import Paper, Setting, Table, as_class, grid

# -- Tables 1 to 4, Figure 3: chest films -----------------------------------------------------------------------------

NIH, CHEXPERT, BOTH = "nih-cxr14", "chexpert", "cross-domain"
FINDINGS = {
    NIH: "cardiomegaly+emphysema+hernia+infiltration+mass+nodule+atelectasis+pneumothorax+pneumonia+fibrosis+edema+consolidation",
    CHEXPERT: "cardiomegaly+atelectasis+pneumothorax+pneumonia+edema+consolidation+enlarged-cardiomediastinum+lung-opacity",
}
"""By site, in the order of Table 1."""
SIZES = (1_000, 5_000, 10_000, 15_000, 20_000, 26_684)
"""Public films in the columns of Table 3."""
FEW_FILMS, SMOKE_FILMS = 2_000, 300
CPU_EPOCHS = dict(zip(SIZES, (168, 42, 21, 14, 11, 8), strict=True))
"""Under cpu, by size of the public set in Table 3: about 504 steps each (517 of 20,000), with batches of 32."""
NO_PUBLIC = ("public-size=none",)
AVERAGED = "method=fedavg|feddf"
AXES = {"dataset": "data.name", "clients": "partition.clients", "alpha": "partition.alpha"}


def _sizes(films: int) -> dict[str, int]:
    """Public films by column, `films` for all of them."""
    return {**{f"public-size={size}": round(size * films / SIZES[-1]) for size in SIZES}, "": films}


NO_BOUND = {"fedad.bounds": False}
BOUND = {"fedad.bounds": True}
ABLATION = shared.variants("fedad", {
    "bound=no dropout=0": ("No bound", {**NO_BOUND, "fedad.dropped": 0}),
    "bound=yes dropout=0": ("Bound (FedAD)", {**BOUND, "fedad.dropped": 0}),
    "bound=yes dropout=1/k": ("Bound, 1/K dropped", {**BOUND, "fedad.dropped": 1}),
    "bound=yes dropout=2/k": ("Bound, 2/K dropped", {**BOUND, "fedad.dropped": 2}),
}, absent=("clients=None",))  # fmt: skip
OFFERED = (
    *shared.variants("fedad", {
        "fedad-one-shot": ("FedAD, one-shot", {"fedad.one_shot": True}),
        "fedad-online": ("FedAD, online", {"fedad.one_shot": False}),
    }),
    shared.SCALED,
    *shared.variants("fedad", {
        "fedad-quantised": ("FedAD, one-shot in uint8", {"fedad.one_shot": True, "fedad.quantised": True}),
    }),
)  # fmt: skip

SETTINGS = (
    Setting("data.name", {"train=nih-cxr14": NIH, "train=cross-domain": f"{NIH}+{CHEXPERT}", "": CHEXPERT}, "paper",
            "section 4.1.1; Table 1's column, elsewhere dataset"),
    Setting("data.task", "findings", "paper", "section 4.1.1: multi-label classification"),
    Setting("data.image_size", 512, "code", "jfhealthcare: long side 512, padded to a square", cpu=32, smoke=16),
    Setting("findings.nih-cxr14", FINDINGS[NIH], "paper", "Table 1: 12 of its 14 labels"),
    Setting("findings.chexpert", FINDINGS[CHEXPERT], "paper", "Table 1: 8 of its 14 labels"),
    Setting("findings.uncertain", "reference", "assumed",
            "jfhealthcare's code: uncertain is present for edema and atelectasis, and absent for its three other findings. Here "
            "it is absent for all others"),
    Setting("public.name", "rsna-pneumonia", "paper", "section 4.1.1, without its labels"),
    Setting("partition.kind", "dirichlet-fedkd", "assumed",
            "section 4.1.2: Dirichlet, by one of a film's findings at random. The paper does not name the rule; this is FedKD's, "
            "by the same first author"),
    Setting("partition.clients", {"train=cross-domain": 6, "": 3}, "paper", "Tables 1, 3 and 4; across domains K_d = 3 of each"),
    Setting("partition.alpha", 1.0, "paper", "Tables 1, 3 and 4"),
    Setting("partition.validation_share", 0.1, "paper",
            "section 4.1.2: 10 % of the training data. Here: 10 % of the patients, held by the server. Only FedDF uses them"),
    Setting("partition.public_limit", {**{f"public-size={size}": size for size in SIZES}, "": 0}, "paper",
            "section 4.1.1 and Table 3; all 26,684 elsewhere (0 means no limit)", cpu=_sizes(FEW_FILMS), smoke=_sizes(SMOKE_FILMS), gpu=_sizes(FEW_FILMS)),
    Setting("partition.pool_limit", 0, "paper", "all training films of a site (0 means no limit)", smoke=600, gpu=4_000),
    Setting("partition.test_limit", 0, "assumed",
            "all test films: NIH's official list, CheXpert's official valid set (0 means no limit)", smoke=300, gpu=2_000),
    Setting("network.client", "resnet-34", "paper", "section 4.1.2"),
    Setting("network.server", "resnet-34", "paper", "section 4.1.2"),
    Setting("network.resnet-34", "resnet34", "paper", "section 4.1.2", cpu="resnet8-narrow", smoke="resnet8-narrow"),
    Setting("network.pretrained", "imagenet", "assumed", "usual for such films; the paper is silent", cpu="none", smoke="none"),
    Setting("local.optimizer", "sgd", "paper", "section 4.1.2; Centralized (assumed) and the other rows train so too"),
    Setting("local.lr", 1e-3, "paper", "section 4.1.2; higher where steps are few", cpu=0.03, smoke=0.08),
    Setting("local.momentum", 0.9, "assumed", "the paper is silent"),
    Setting("local.weight_decay", 0.0, "assumed", "the paper is silent"),
    Setting("local.schedule", {AVERAGED: "constant", "": "cosine"}, "paper",
            "section 4.1.2; constant (assumed) within a round of what averages parameters"),
    Setting("local.final_lr", 1e-6, "paper", "section 4.1.2"),
    Setting("local.batch_size", 32, "paper", "section 4.1.2", smoke=16),
    Setting("local.epochs", {AVERAGED: 1, "": 15}, "paper",
            "section 4.1.2; averaging methods (assumed): one in a round. More where films are few",
            cpu={AVERAGED: 2, "": 40}, smoke={AVERAGED: 3, "": 20}, gpu={AVERAGED: 1, "": 3}),
    Setting("server.optimizer", "sgd", "paper", "section 4.1.2; FedMD's central model (assumed) learns so too"),
    Setting("server.lr", 1e-2, "paper", "section 4.1.2; higher where steps are few", cpu=0.03, smoke=0.06),
    Setting("server.momentum", 0.9, "assumed", "the paper is silent"),
    Setting("server.weight_decay", 0.0, "assumed", "the paper is silent"),
    Setting("server.schedule", "cosine", "paper", "section 4.1.2"),
    Setting("server.final_lr", 1e-3, "paper", "section 4.1.2"),
    Setting("server.batch_size", 32, "assumed", "as local training; the paper names one batch size", smoke=16),
    Setting("server.epochs", 20, "paper",
            "section 4.1.2, for every size of the public set. At cpu every size has equally many steps, because 8 epochs of the smallest are 24",
            cpu={**{f"public-size={size}": epochs for size, epochs in CPU_EPOCHS.items()}, "": CPU_EPOCHS[SIZES[-1]]}, smoke=10, gpu=5),
    Setting("augmentation.rotation", 15.0, "code",
            "degrees; jfhealthcare, which the paper follows. Here films are rotated after they are prepared, with bilinear "
            "interpolation and repeated edges. There they are rotated before, with grey edges"),
    Setting("augmentation.shift", 0.05, "code", "jfhealthcare"),
    Setting("augmentation.scale", 0.05, "code", "jfhealthcare: 0.95 to 1.05"),
    *as_class("fedad", "bounds dropped rho threshold bound_scale second_order quantised"),
    Setting("fedad.one_shot", False, "assumed",
            "section 4 names one-shot only for segmentation and reconstruction. So for films, clients answer in every epoch, "
            "for newly augmented images", cpu=True, smoke=True),
    *shared.alike("fedavg feddf", "rounds", 100, "code", "FedDF's released commands; the paper is silent", cpu=20, smoke=6, gpu=5),
    *shared.alike("fedavg feddf", "participation", 1.0, "assumed", "three sites, all in every round; the paper is silent"),
    Setting("feddf.distillation_steps", 10_000, "code", "FedDF's code", cpu=150, smoke=20, gpu=100),
    Setting("feddf.distillation_batch_size", 64, "code", "FedDF's code", smoke=32),
    *as_class("feddf", "distillation_lr clip_norm may_keep_average augmented"),
    Setting("feddf.evaluation_interval", 100, "code", "FedDF's code", cpu=50, smoke=10, gpu=50),
    Setting("feddf.patience", 1_000, "code", "FedDF's code", cpu=100, smoke=20, gpu=100),
    Setting("fedmd.rounds", 20, "code", "FedMD's code; the paper is silent", cpu=6, smoke=2, gpu=3),
    Setting("fedmd.public_samples", 5_000, "code", "FedMD's code", cpu=1_000, smoke=100, gpu=1_000),
    *as_class("fedmd", "digest_epochs digest_lr"),
    Setting("fedmd.digest_batch_size", 256, "code", "FedMD's code", cpu=64, smoke=32, gpu=64),
    Setting("fedmd.revisit_epochs", 4, "code", "FedMD's code", cpu=2, smoke=2, gpu=1),
    Setting("evaluation.last_epochs", 1, "assumed", "AUC at the end"),
    Setting("evaluation.statistic", "last", "assumed", "the paper does not say"),
)  # fmt: skip

DOMAINS = (NIH, CHEXPERT)
K_COLUMNS = tuple(
    {"dataset": site, "clients": k, "alpha": a}
    for site in DOMAINS
    for a in ("1", "0.1")
    for k in ("3", "5")
)

_table = partial(Table, metrics=("mauc",), unit="percent", offered=OFFERED)

# -- the trial: canvases of digits, of which it is known where each is, so that attention can be checked ----------------

FIRST, SECOND, PUBLIC = "mnist-canvas", "mnist-canvas-second", "digits-canvas-public"
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TWO = "train=two-sites"
TRIAL_SETTINGS = (
    Setting("data.name", {TWO: f"{FIRST}+{SECOND}", "": FIRST}, "assumed", "as the sites of Table 1"),
    Setting("data.image_size", 40, "assumed", "a canvas as it is"),
    Setting(f"findings.{FIRST}", {TWO: "+".join(DIGITS[:7]), "": "+".join(DIGITS)}, "assumed",
            "all digits; of two sites each has a label set of its own, and four digits are in both"),
    Setting(f"findings.{SECOND}", "+".join(DIGITS[3:]), "assumed", "the other site's label set"),
    Setting("public.name", PUBLIC, "assumed",
            "other writers' digits, scanned coarser: as RSNA's films to NIH's, the same things from elsewhere"),
    Setting("partition.public_limit", 2_000, "assumed", "public canvases", smoke=300),
    Setting("partition.clients", {TWO: 6, "": 3}, "paper", "Tables 1 to 4; of two sites K_d = 3 of each"),
    Setting("partition.pool_limit", 0, "assumed", "all training canvases of a site (0 means no limit)", smoke=600),
    Setting("network.resnet-34", "resnet8-narrow", "assumed", "small, so that the schedule can be kept; its maps are 10 x 10"),
    Setting("network.pretrained", "none", "assumed", "there are no such weights of it"),
    Setting("local.lr", 0.1, "assumed", "higher where films are few; tried on validation canvases and seed 7, no other was", smoke=0.08),
    Setting("local.epochs", {AVERAGED: 2, "": 15}, "paper", "section 4.1.2; two in a round of what averages parameters (assumed)",
            smoke={AVERAGED: 3, "": 20}),
    Setting("server.lr", 0.1, "assumed", "as local.lr; of 0.03 and 0.1 the better on validation canvases and seed 7", smoke=0.06),
    Setting("server.epochs", 20, "paper", "section 4.1.2", smoke=10),
    Setting("feddf.rounds", 10, "assumed", "rounds of two epochs", smoke=6),
)  # fmt: skip

TRIED = shared.variants("fedad", {
    "no-bound": ("FedAD without the bound", NO_BOUND),
    "lower": ("FedAD, lower bound alone", {"fedad.upper": False}),
    "scaled": (shared.SCALED.title, shared.SCALED.config),
})  # fmt: skip

PAPER = Paper(
    key="fedad",
    title="Federated Learning with Privacy-Preserving Ensemble Attention Distillation",
    citation="X. Gong, L. Song, R. Vedula, et al. IEEE Transactions on Medical Imaging",
    settings=SETTINGS,
    released_code=False,
    seed_axes=("partition", "weights", "sampling", "shuffling"),
    tables=(
        _table(
            key="table1",
            caption="AUC of findings on chest films of NIH ChestX-ray14 and CheXpert, by where the clients' films come from",
            rows=(
                *shared.without((f"train={BOTH}",), shared.CENTRALIZED, shared.STANDALONE),
                shared.FEDAD,
            ),
            columns=grid(train=(*DOMAINS, BOTH), test=DOMAINS),
            axes={"train": "data.train", "test": "evaluation.test"},
            measure="findings",
            metrics=("auc", "mauc", "num-classes"),
        ),
        _table(
            key="table2",
            caption="Mean AUC with and without the attention bound, and by share of local models dropped, over K and alpha",
            rows=(*shared.without(("clients=3|5",), shared.CENTRALIZED), *ABLATION),
            columns=(*K_COLUMNS, *grid(dataset=DOMAINS)),
            axes=AXES,
            own="bound=yes dropout=0",
            offered=shared.without(("clients=None",), *OFFERED),
        ),
        _table(
            key="table3",
            caption="Mean AUC against the number of public films (CheXpert, K = 3, alpha = 1)",
            rows=(
                *shared.without(("public-size=" + "|".join(map(str, SIZES)),), shared.CENTRALIZED),
                *shared.without(NO_PUBLIC, shared.FEDAD),
            ),
            columns=grid(dataset=(CHEXPERT,), **{"public-size": ("none", *map(str, SIZES))}),
            axes={"dataset": "data.name", "public-size": ""},
            x_axis="public-size",
            scaled={"public-size": "partition.public_limit"},
            offered=shared.without(NO_PUBLIC, *OFFERED),
        ),
        _table(
            key="table4",
            caption="Federated methods on chest films (CheXpert, K = 3, alpha = 1), and what each exchanges",
            rows=(shared.CENTRALIZED, shared.FEDAVG, shared.FEDDF, shared.FEDMD, shared.FEDAD),
            columns=grid(dataset=(CHEXPERT,)),
            axes={"dataset": "data.name"},
            measure="exchange",
        ),
        *fedad_segmentation.TABLES,
        *fedad_reconstruction.TABLES,
        _table(
            key="figure3",
            caption="Attention of local models in test films, its consensus (yellow), diversity (black), and the central model's",
            rows=(
                *shared.variants(
                    "fedad", {"fedad-no-bound": ("FedAD without the bound", NO_BOUND)}
                ),
                shared.FEDAD,
            ),
            columns=grid(dataset=(NIH,)),
            axes={"dataset": "data.name"},
            measure="attention",
            metrics=("attention-in-diversity", "consensus-covered", "attention-empty"),
        ),
        _table(
            key="trial",
            caption="Canvases of digits at three clients, and at two sites of three with label sets of their own",
            rows=(
                *shared.without((TWO,), shared.CENTRALIZED),
                shared.STANDALONE,
                *shared.without((TWO,), shared.FEDDF, shared.FEDMD),
                *TRIED,
                shared.FEDAD,
            ),
            columns=grid(train=("one-site", "two-sites")),
            axes={"train": "data.train"},
            measure="pointing",
            metrics=("mauc", "pointing-accuracy", "attention-empty"),
            offered=(),
            settings=TRIAL_SETTINGS,
        ),
    ),
)
