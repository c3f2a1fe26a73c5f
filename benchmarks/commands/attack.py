"""`attack`: private images from what a client shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.attacks import targets
from benchmarks.commands.app import app, console
from benchmarks.commands.asked import check_device, choice
from benchmarks.commands.options import RequireReal
from benchmarks.tables.spec import SpecError
from results.command_line import NUMBER, WHOLE, number, path, whole
from results.files import cache_home, check_writable


@app.command("attack")
def attack_clients(
    dataset: Annotated[str, typer.Option(help="data set of the private images")] = "digits",
    network: Annotated[str, typer.Option(help="DLG and iDLG need a smooth one")] = "lenet-sigmoid",
    kind: Annotated[
        str, typer.Option("--attack", help="dlg, idlg or inverting (Inverting Gradients)")
    ] = "dlg",
    target: Annotated[
        str,
        typer.Option(
            help=f"fedavg (gradients, updates), or whose answers: {', '.join(targets.names())}"
        ),
    ] = "fedavg",
    images: Annotated[
        int,
        typer.Option(
            parser=whole(1),
            metavar=WHOLE,
            help="private images that are attacked, with --target fedavg",
        ),
    ] = 10,
    clients: Annotated[
        int,
        typer.Option(
            parser=whole(1), metavar=WHOLE, help="clients that are attacked, with the other targets"
        ),
    ] = 5,
    samples: Annotated[
        int,
        typer.Option(
            parser=whole(1), metavar=WHOLE, help="images per client, with the other targets"
        ),
    ] = 200,
    epochs: Annotated[
        int,
        typer.Option(
            parser=whole(1), metavar=WHOLE, help="of the clients' training, with the other targets"
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
        str, typer.Option(help="gradient, or update: the change of the weights by local training")
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
        bool, typer.Option(help="inputs as in training here, or in [0, 1] as in DLG's experiments")
    ] = False,
    seed: Annotated[
        int, typer.Option(parser=whole(0), metavar=WHOLE, help="of images, weights and starts")
    ] = 0,
    jobs: Annotated[
        int,
        typer.Option(
            parser=whole(0), metavar=WHOLE, help="worker processes; 0: one per core, one on a GPU"
        ),
    ] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, mps; answers are attacked on cpu")
    ] = "cpu",
    require_real: RequireReal = False,
    results: Annotated[
        Path, typer.Option(parser=path, metavar="PATH", help="folder for CSV, record and picture")
    ] = Path("results"),
) -> None:
    """Reconstruct private images from what a client shares, and show how near the attack comes."""
    from datasets import catalogue

    choice("--attack", kind, ("dlg", "idlg", "inverting"))
    choice("--target", target, ("fedavg", *targets.names()))
    choice("--shares", shares, ("gradient", "update"))
    choice("--batch-norm", batch_norm, ("eval", "train"))
    check_device(device)
    for folder in (cache_home(), results / "attack"):
        check_writable(folder)
    data = catalogue.resolve(dataset, require_real=require_real)

    from benchmarks.attacks import answers, attack
    from benchmarks.measures import reconstruction
    from benchmarks.publish.progress import progress_bar
    from benchmarks.running.machine import default_jobs
    from privacy.attacks.threat import ThreatModel

    work: Any
    module: Any = attack if target == "fedavg" else answers
    try:
        if target == "fedavg":
            threat = ThreatModel(
                cast(Any, shares), batch_size, local_steps or 1, local_lr, cast(Any, batch_norm)
            )
            effort = reconstruction.Attack(
                cast(Any, kind), threat, iterations or reconstruction.ITERATIONS[kind], restarts
            )
            work = attack.Case(data, network, effort, images, image_size, normalise, seed, device)
        else:
            threat = ThreatModel(
                "update", batch_size, local_steps or 5, local_lr, cast(Any, batch_norm)
            )
            work = answers.Inquiry(
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
            task = bar.add_task("messages", total=work.messages)
            outcomes = module.run(work, jobs or default_jobs(device), lambda: bar.advance(task))
    except (ValueError, ArithmeticError, RuntimeError) as error:
        raise SpecError(f"the attack cannot be run: {error}") from error
    console.print(escape(str(work)), soft_wrap=True)
    table = RichTable()
    for heading in module.COLUMNS:
        table.add_column(heading.replace("_", " "), justify="right")
    for line in module.lines(outcomes):
        table.add_row(*(_short(value) for value in line.values()))
    console.print(table)
    console.print(f"[bold]{module.verdict(outcomes)}[/]", soft_wrap=True)
    for file in module.write(work, outcomes, results / "attack"):
        console.print(f"wrote {escape(str(file))}", soft_wrap=True)


def _short(value: str) -> str:
    """A number with three digits after the point, or three that count; a text as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return value if value.isdigit() else f"{number:.2e}" if abs(number) < 1e-2 else f"{number:.3f}"
