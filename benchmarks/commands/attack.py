"""`attack`: private images from what a client shares."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.attacks import targets
from benchmarks.commands.app import app, console
from benchmarks.commands.asked import check_device
from benchmarks.tables.request import Request, choice, takes
from benchmarks.tables.spec import SpecError
from results.command_line import NUMBER, WHOLE, number, whole
from results.files import cache_home, check_writable

SHARES = f"Options of --target {targets.SHARING}, whose clients share gradients or updates"
ANSWERS = f"Options of --target {' or '.join(targets.names())}, whose clients answer"
"""Panels of the help, of options that other targets have no use for."""


@app.command("attack")
@takes("require_real", "jobs", "results")
def attack_clients(
    request: Request,
    ctx: typer.Context,
    dataset: Annotated[str, typer.Option(help="data set of the private images")] = "digits",
    network: Annotated[str, typer.Option(help="DLG and iDLG need a smooth one")] = "lenet-sigmoid",
    kind: Annotated[
        str,
        typer.Option(
            "--attack",
            help="dlg, idlg or inverting (Inverting Gradients)",
            rich_help_panel=SHARES,
        ),
    ] = "dlg",
    target: Annotated[
        str,
        typer.Option(
            help=f"{targets.SHARING} (gradients, updates), or whose answers:"
            f" {', '.join(targets.names())}"
        ),
    ] = targets.SHARING,
    images: Annotated[
        int,
        typer.Option(
            parser=whole(1),
            metavar=WHOLE,
            help="private images that are attacked",
            rich_help_panel=SHARES,
        ),
    ] = 10,
    clients: Annotated[
        int,
        typer.Option(
            parser=whole(1),
            metavar=WHOLE,
            help="clients that are attacked",
            rich_help_panel=ANSWERS,
        ),
    ] = 5,
    samples: Annotated[
        int,
        typer.Option(
            parser=whole(1), metavar=WHOLE, help="images per client", rich_help_panel=ANSWERS
        ),
    ] = 200,
    epochs: Annotated[
        int,
        typer.Option(
            parser=whole(1),
            metavar=WHOLE,
            help="of the clients' training",
            rich_help_panel=ANSWERS,
        ),
    ] = 50,
    image_size: Annotated[
        int,
        typer.Option(
            parser=whole(0), metavar=WHOLE, help="pixels of a side; 0: the data set's own"
        ),
    ] = 0,
    iterations: Annotated[
        int,
        typer.Option(
            parser=whole(0), metavar=WHOLE, help="of the optimiser; 0: the attack's own default"
        ),
    ] = 0,
    restarts: Annotated[
        int,
        typer.Option(
            parser=whole(1), metavar=WHOLE, help="starts at most; another only where none succeeded"
        ),
    ] = 3,
    shares: Annotated[
        str,
        typer.Option(
            help="gradient, or update: the change of the weights by local training",
            rich_help_panel=SHARES,
        ),
    ] = "gradient",
    batch_size: Annotated[
        int, typer.Option(parser=whole(1), metavar=WHOLE, help="images per local step")
    ] = 1,
    local_steps: Annotated[
        int,
        typer.Option(
            parser=whole(0), metavar=WHOLE, help="steps of an update; 0: one, or five for answers"
        ),
    ] = 0,
    local_lr: Annotated[
        float, typer.Option(parser=number(), metavar=NUMBER, help="learning rate of these steps")
    ] = 0.05,
    batch_norm: Annotated[
        str,
        typer.Option(help="batch normalisation by running statistics (eval) or batches' (train)"),
    ] = "eval",
    normalise: Annotated[
        bool,
        typer.Option(
            help="inputs as in training here, or in [0, 1] as in DLG's experiments",
            rich_help_panel=SHARES,
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(parser=whole(0), metavar=WHOLE, help="of images, weights and starts")
    ] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, mps", rich_help_panel=SHARES)
    ] = "cpu",
) -> None:
    """Reconstruct private images from what a client shares, and show how near the attack comes."""
    from datasets import catalogue

    choice("--attack", kind, ("dlg", "idlg", "inverting"))
    choice("--target", target, (targets.SHARING, *targets.names()))
    shared = target == targets.SHARING
    _check_given(ctx, target, *((SHARES, ANSWERS) if shared else (ANSWERS, SHARES)))
    choice("--shares", shares, ("gradient", "update"))
    choice("--batch-norm", batch_norm, ("eval", "train"))
    check_device(device)
    for folder in (cache_home(), request.results / "attack"):
        check_writable(folder)
    data = catalogue.resolve(dataset, require_real=request.require_real)

    from benchmarks.attacks.answers import Inquiry
    from benchmarks.attacks.messages import Case
    from benchmarks.attacks.outcome import write_files
    from benchmarks.running.execute import prepare_device
    from benchmarks.running.machine import default_jobs
    from benchmarks.running.processes import in_processes
    from benchmarks.running.progress import ended, progress_bar
    from federation.execution import DEFAULT
    from privacy.attacks.gradients import ITERATIONS, Attack
    from privacy.attacks.threat import ThreatModel

    work: Any
    try:
        if shared:
            threat = ThreatModel(
                cast(Any, shares), batch_size, local_steps or 1, local_lr, cast(Any, batch_norm)
            )
            effort = Attack(cast(Any, kind), threat, iterations or ITERATIONS[kind], restarts)
            work = Case(data, network, effort, images, image_size, normalise, seed, device)
        else:
            threat = ThreatModel(
                "update", batch_size, local_steps or 5, local_lr, cast(Any, batch_norm)
            )
            work = Inquiry(
                data,
                target,
                network,
                clients,
                samples,
                epochs=epochs,
                threat=threat,
                iterations=iterations or 50,
                restarts=restarts,
                image_size=image_size,
                seed=seed,
            )
        with progress_bar(console) as bar:
            task = bar.add_task("messages", total=None)

            def done() -> None:
                if count := ended(console, bar, task):
                    console.print(f"attacked{count}")

            prepare_device(device, 1, DEFAULT)  # as the workers, whose stages are keyed by it
            items = work.items()
            bar.update(task, total=len(items))
            jobs = request.jobs or default_jobs(device)
            outcomes = in_processes(work.attacked, items, jobs, done, device)
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise SpecError(f"the attack cannot be run: {error}") from error
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
            f"{', '.join(given)}: of no use with --target {target}, which has"
            f" {', '.join(options(own).values())}, beside what all targets have"
        )


def _short(value: str) -> str:
    """A number with three digits after the point, or three that count; a text as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return value if value.isdigit() else f"{number:.2e}" if abs(number) < 1e-2 else f"{number:.3f}"
