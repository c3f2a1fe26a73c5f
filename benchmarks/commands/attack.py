"""`attack`: private images from what a client shares."""

from dataclasses import dataclass
from typing import Any, cast

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from fedtables.benchmarks.attacks import targets
from fedtables.benchmarks.commands.app import console
from fedtables.benchmarks.commands.asked import check_device
from fedtables.benchmarks.tables.readers import one_of
from fedtables.benchmarks.tables.request import Request, option, quantity, switch, takes
from fedtables.benchmarks.tables.spec import SpecError
from fedtables.results.cached import in_use
from fedtables.results.command_line import number, whole
from fedtables.results.files import cache_home, check_writable

SHARES = f"Options of --target {targets.SHARING} (clients share gradients or updates)"
ANSWERS = f"Options of --target {' or '.join(targets.names())} (clients send answers)"
"""Panels of the help: options that only these targets have."""
TARGETS = (targets.SHARING, *targets.names())
OF_SHARES, OF_ANSWERS = {"rich_help_panel": SHARES}, {"rich_help_panel": ANSWERS}


@dataclass(frozen=True)
class Attacked:
    """Options of `attack`; the help texts say what each one means."""

    dataset: str = option("digits", str, "data set of the private images")
    network: str = option(
        "lenet-sigmoid", str, "network of the clients; DLG and iDLG need a smooth one"
    )
    kind: str = option(
        "dlg",
        one_of("--attack", ("dlg", "idlg", "inverting")),
        "attack: dlg, idlg or inverting (Inverting Gradients)",
        "--attack",
        **OF_SHARES,
    )
    target: str = option(
        targets.SHARING,
        one_of("--target", TARGETS),
        f"what is attacked: {TARGETS[0]} (gradients, updates), or the answers of"
        f" {', '.join(TARGETS[1:])}",
    )
    images: int = quantity(10, whole(1), "number of private images to attack", **OF_SHARES)
    clients: int = quantity(5, whole(1), "number of clients to attack", **OF_ANSWERS)
    samples: int = quantity(200, whole(1), "images per client", **OF_ANSWERS)
    epochs: int = quantity(50, whole(1), "epochs of the clients' training", **OF_ANSWERS)
    image_size: int = quantity(0, whole(), "pixels of a side; 0: the data set's own")
    iterations: int = quantity(0, whole(), "iterations of the optimiser; 0: the attack's default")
    restarts: int = quantity(
        3, whole(1), "most starts per image; the next one only if none succeeded"
    )
    shares: str = option(
        "gradient",
        one_of("--shares", ("gradient", "update")),
        "gradient, or update (the change of the weights by local training)",
        **OF_SHARES,
    )
    batch_size: int = quantity(1, whole(1), "images per local step")
    local_steps: int = quantity(0, whole(), "local steps of an update; 0: one, or five for answers")
    local_lr: float = quantity(0.05, number(), "learning rate of these steps")
    batch_norm: str = option(
        "eval",
        one_of("--batch-norm", ("eval", "train")),
        "batch normalisation with running statistics (eval) or with those of the batch (train)",
    )
    normalise: bool = switch(
        "normalise inputs as in training here; without it they are in [0, 1], as in DLG's paper",
        **OF_SHARES,
    )
    seed: int = quantity(0, whole(), "seed of images, weights and starts")
    device: str = option("cpu", str, "cpu, cuda, cuda:1, mps", **OF_SHARES)

    def work(self, data: Any) -> Any:
        """What is to be done: of a client's messages, or of its answers."""
        from fedtables.benchmarks.attacks.answers import Inquiry
        from fedtables.benchmarks.attacks.messages import Case
        from fedtables.privacy.attacks.gradients import ITERATIONS, Attack
        from fedtables.privacy.attacks.threat import ThreatModel

        shared = self.target == targets.SHARING
        threat = ThreatModel(
            cast(Any, self.shares) if shared else "update",
            self.batch_size,
            self.local_steps or (1 if shared else 5),
            self.local_lr,
            cast(Any, self.batch_norm),
        )
        if shared:
            iterations = self.iterations or ITERATIONS[self.kind]
            effort = Attack(cast(Any, self.kind), threat, iterations, self.restarts)
            seen = (self.images, self.image_size, self.normalise, self.seed, self.device)
            return Case(data, self.network, effort, *seen)
        return Inquiry(
            data,
            self.target,
            self.network,
            self.clients,
            self.samples,
            epochs=self.epochs,
            threat=threat,
            iterations=self.iterations or 50,
            restarts=self.restarts,
            image_size=self.image_size,
            seed=self.seed,
        )


@takes("require_real", "jobs", "results")
@takes(of=Attacked)
@in_use()
def attack_clients(asked: Attacked, request: Request, ctx: typer.Context) -> None:
    """Reconstruct private images from what a client shares, and measure how close they come."""
    from fedtables.datasets import catalogue

    shared = asked.target == targets.SHARING
    _check_given(ctx, asked.target, *((SHARES, ANSWERS) if shared else (ANSWERS, SHARES)))
    check_device(asked.device)
    for folder in (cache_home(), request.results / "attack"):
        check_writable(folder)
    data = catalogue.resolve(asked.dataset, require_real=request.require_real)

    from fedtables.benchmarks.attacks.outcome import write_files
    from fedtables.benchmarks.running.execute import prepare_device
    from fedtables.benchmarks.running.machine import default_jobs
    from fedtables.benchmarks.running.pool import in_processes
    from fedtables.benchmarks.running.progress import ended, progress_bar
    from fedtables.federation.execution import DEFAULT

    try:
        work = asked.work(data)
        with progress_bar(console) as bar:
            task = bar.add_task("messages", total=None)

            def done() -> None:
                if count := ended(console, bar, task):
                    console.print(f"attacked{count}")

            prepare_device(asked.device, 1, DEFAULT)  # as the workers, whose stages it keys
            items = work.items()
            bar.update(task, total=len(items))
            jobs = request.jobs or default_jobs(asked.device)
            outcomes = in_processes(work.attacked, items, jobs, done, asked.device)
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise SpecError(f"the attack failed: {error}") from error
    console.print(escape(str(work)), soft_wrap=True)
    lines, table = [line for outcome in outcomes for line in outcome.lines], RichTable()
    for heading in lines[0]:
        table.add_column(heading.replace("_", " "), justify="right")
    for line in lines:
        table.add_row(*(_short(value) for value in line.values()))
    console.print(table)
    console.print(f"[bold]{work.verdict(lines)}[/]", soft_wrap=True)
    base = request.results / "attack" / work.stem
    for file in write_files(base, str(work), outcomes, work.about(lines), work.noted):
        console.print(f"wrote {escape(str(file))}", soft_wrap=True)


def _check_given(ctx: typer.Context, target: str, own: str, others: str) -> None:
    """Raise SpecError for options of the panel `others` that were given: the target, whose own are
    in `own`, would do nothing with them.
    """

    def options(panel: str) -> dict[str, str]:
        of_panel = (p for p in ctx.command.params if getattr(p, "rich_help_panel", None) == panel)
        return {str(p.name): p.opts[0] for p in of_panel}

    given = [
        option
        for name, option in options(others).items()
        if (source := ctx.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given:
        raise SpecError(
            f"{', '.join(given)}: --target {target} has no such option; its own are"
            f" {', '.join(options(own).values())}"
        )


def _short(value: str) -> str:
    """A number with three digits after the point, or three that count; a text as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return value if value.isdigit() else f"{number:.2e}" if abs(number) < 1e-2 else f"{number:.3f}"
