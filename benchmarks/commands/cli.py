"""The command line. Every command says what it did, what it did not, and what to do next.

Only what every command needs is imported up here: `--help` and `list` answer at once.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from benchmarks.tables import bandwidth, registry
from benchmarks.tables.spec import PROFILES, PROTOCOLS, Scalar, SpecError
from results import published
from results.files import DataError, ResultsError
from results.names import near

if TYPE_CHECKING:
    from benchmarks.running.ray_executor import Cluster
    from benchmarks.tables.cells import Cell, Selection
    from benchmarks.tables.spec import Paper, Table
    from federation.execution import Execution
    from results.record import Record

app = typer.Typer(
    help=(
        "Regenerate the tables of four federated-distillation papers. Start with: python -m"
        " benchmarks reproduce dlad/table2"
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = 200  # numbers that go to a file must not be cut
errors = Console(stderr=True, highlight=False)


def main() -> None:
    """Run the command line; expected errors become one message and exit code 1, Ctrl-C becomes
    130.
    """
    try:
        app()
    except (SpecError, DataError, ResultsError) as error:
        errors.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == 130:  # what typer makes of Ctrl-C
            errors.print(
                "interrupted. Finished cells and stages are kept; the same command goes on from"
                " there.",
                soft_wrap=True,
            )
        raise


def _choice(option: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise SpecError(f"{option} {value}: no such value; {near(value, known)}")
    return value


def _tables(names: list[str], protocol: str = "paper", planned: bool = False) -> list[str]:
    """Table names, with a paper's key standing for all of its tables that the protocol has. Raises
    SpecError if unknown.

    With `planned` also those without a runner whose bytes are known from first principles.
    """
    found: list[str] = []
    for name in names:
        if name in registry.papers():
            tables = registry.papers()[name].tables
            known = [
                f"{name}/{table.key}"
                for table in tables
                if table.released or protocol != "released"
            ]
            known += [table for table in bandwidth.tables(name) if planned and table not in known]
            found += known
            if not known:
                raise SpecError(
                    f"no table of {name} has a runner yet; `python -m benchmarks plan {name}` has"
                    " bytes of some"
                )
        elif planned and bandwidth.accounts(name):
            found.append(name)
        else:
            registry.find_table(name)
            found.append(name)
    return found


def _selection(
    profile: str,
    protocol: str,
    only: list[str],
    methods: str,
    seeds: str,
    device: str,
    threads: int,
    require_real: bool,
    plugins: list[Path],
    precision: str = "fp32",
    compiled: str = "off",
    stacked: int = 1,
) -> Selection:
    from benchmarks.tables.cells import Selection, parse_methods, parse_only
    from federation.execution import COMPILE, PRECISIONS, Execution

    try:
        numbers = tuple(int(seed) for seed in seeds.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise SpecError(
            "--seeds takes different whole numbers from 0, separated by commas, as in --seeds"
            f" 0,1,2; got {seeds!r}"
        )
    if not re.fullmatch(r"cuda:\d+", device):
        _choice("--device", device, ("cpu", "cuda", "mps"))
    for path in plugins:  # so that a broken file is named before anything else is wrong
        registry.find_method(path.stem.replace("_", "-"), [str(p) for p in plugins]).load()
    add, drop = parse_methods(methods)
    try:
        execution = Execution(
            _choice("--precision", precision, PRECISIONS),
            _choice("--compile", compiled, COMPILE),
            stacked,
        )
    except ValueError as error:
        raise SpecError(f"--stacked {stacked}: {error}") from error
    return Selection(
        profile=_choice("--profile", profile, PROFILES),
        protocol=_choice("--protocol", protocol, PROTOCOLS),
        seeds=numbers,
        only=parse_only(only),
        add=add,
        drop=drop,
        plugins=tuple(str(path) for path in plugins),
        require_real=require_real,
        device=device,
        threads=threads,
        execution=execution,
    )


def _overrides(
    names: list[str], pairs: list[str], plugins: tuple[str, ...]
) -> tuple[tuple[str, Scalar], ...]:
    """The settings of `--set`. Raises SpecError if the tables are of several papers."""
    from benchmarks.tables.cells import parse_overrides

    papers = {paper.key: paper for paper, _ in map(registry.find_table, names)}
    if pairs and len(papers) > 1:
        raise SpecError(f"--set takes tables of one paper, these are of {', '.join(papers)}")
    return parse_overrides(pairs, next(iter(papers.values())), plugins)


def _check_execution(execution: Execution, device: str) -> None:
    """Raise SpecError for a way of running that the device or the machine does not have."""
    if execution.precision == "tf32" and not device.startswith("cuda"):
        raise SpecError(
            f"--precision tf32: only CUDA devices have it, this run is on {device}; use fp32 or"
            " bf16"
        )
    if execution.compile == "reduce-overhead" and not device.startswith("cuda"):
        raise SpecError(
            f"--compile reduce-overhead: it is for CUDA graphs, this run is on {device}; use"
            " --compile default"
        )
    if execution.compile != "off" and not any(
        shutil.which(name) for name in (os.environ.get("CXX", "g++"), "g++", "clang++")
    ):
        raise SpecError(
            "--compile: torch.compile needs a C++ compiler; install g++ or clang++, or leave"
            " --compile off"
        )


def _check_device(device: str) -> None:
    """Raise SpecError if the run's device is not there. Imports torch, so only for runs that need a
    device.
    """
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise SpecError(
            f"--device {device}: this machine has no usable CUDA device; use --device cpu, or"
            " --profile cpu for less work"
        )
    if device == "mps" and not torch.backends.mps.is_available():
        raise SpecError("--device mps: this machine has no usable MPS device; use --device cpu")


Tables = Annotated[
    list[str] | None,
    typer.Argument(help="paper/table, for example dlad/table2; or a paper for all of its tables"),
]
Profile = Annotated[
    str,
    typer.Option(
        help="smoke (embedded data, seconds), cpu (real data, reduced), paper (full scale, CUDA)"
    ),
]
Protocol = Annotated[
    str, typer.Option(help="paper, or released: what the authors' code does where it departs")
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE", help="only these columns or rows; values may be a,b; repeatable"
    ),
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="SETTING=VALUE",
        help="a setting of your own; the table's files are named apart; repeatable",
    ),
]
Methods = Annotated[str, typer.Option(metavar="+NAME,-NAME", help="add methods as rows, drop rows")]
Seeds = Annotated[
    str, typer.Option(help="comma-separated; tables print mean and standard deviation over them")
]
Device = Annotated[
    str, typer.Option(help="cpu, cuda, cuda:1, mps; default: cuda for the paper profile, else cpu")
]
Threads = Annotated[
    int, typer.Option(min=1, help="threads per worker; two workers of one thread beat one of two")
]
Precision = Annotated[
    str, typer.Option(help="of training: fp32, tf32 (CUDA), bf16 (autocast); files are named apart")
]
Compile = Annotated[
    str,
    typer.Option(
        "--compile", help="torch.compile for training: off, default, reduce-overhead (CUDA graphs)"
    ),
]
Stacked = Annotated[
    int,
    typer.Option(
        min=1, help="clients trained together as one computation; for GPUs and small networks"
    ),
]
Jobs = Annotated[int, typer.Option(min=0, help="worker processes; 0: one per core, one on a GPU")]
Fresh = Annotated[bool, typer.Option("--fresh", help="compute everything again, cached or not")]
Results = Annotated[Path, typer.Option(help="folder for CSV, plots and records")]
Plugins = Annotated[
    list[Path] | None,
    typer.Option("--plugin", metavar="FILE", help="a file with one more method; repeatable"),
]
Ray = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="run cells as Ray tasks: local, auto, or host:port of a cluster",
    ),
]
RayCpus = Annotated[
    float,
    typer.Option("--num-cpus", help="with --ray: processors of a cell; 0: as many as --threads"),
]
RayGpus = Annotated[
    float | None,
    typer.Option(
        "--num-gpus", help="with --ray: GPUs of a cell, 0.25 for four on one; default: 1 on cuda"
    ),
]
RayCache = Annotated[
    str,
    typer.Option(
        "--ray-cache",
        help=(
            "with --ray: fetch (stages travel through Ray) or shared (all nodes see"
            " FEDTABLES_CACHE)"
        ),
    ),
]
RequireReal = Annotated[bool, typer.Option("--require-real", help="refuse stand-in data")]


@app.command("list")
def list_everything() -> None:
    """Papers and tables, methods, and data sets with what is present."""
    tables = RichTable(
        "table", "what it shows", "reproducible", title="Tables", title_justify="left"
    )
    for name, table in registry.all_tables().items():
        paper = name.split("/")[0]
        if table is not None:
            tables.add_row(name, f"{table.title}: {table.caption}", "yes")
        else:
            count = sum(cell.value is not None for cell in published.published_table(name))
            tables.add_row(
                name,
                f"{count} published numbers of {paper}",
                "not yet" + ("; plan" if bandwidth.accounts(name) else ""),
            )
    console.print(tables)
    methods = RichTable("method", "where", title="Methods and baselines", title_justify="left")
    for method in registry.methods().values():
        methods.add_row(method.name, f"{method.folder}/{Path(method.path).name}")
    console.print(methods)
    _data_table()


def _data_table() -> None:
    from datasets import catalogue
    from datasets.source import REAL

    home = catalogue.data_home()
    table = RichTable(
        "data set",
        "what",
        "state",
        "else uses",
        title=f"Data sets (data home: {home})",
        title_justify="left",
    )
    for name, source in catalogue.sources().items():
        if not source.embedded:
            state = "bundled" if source.kind == REAL else "generated"
        else:
            try:
                catalogue.check(name)
                state = "present" if catalogue.is_present(name) else "absent"
            except DataError:
                state = "damaged"
        table.add_row(name, source.title, state, ", ".join(source.stand_ins))
    console.print(table)
    if not home.is_dir():
        console.print(f"{home} does not exist; FEDTABLES_DATA names another data home")


@app.command()
def show(
    table: Annotated[str, typer.Argument(help="paper/table")],
    profile: Profile = "smoke",
    protocol: Protocol = "paper",
) -> None:
    """Published numbers of a table, and its protocol card with the source of every
    hyper-parameter.
    """
    from benchmarks.tables import cards

    _choice("--profile", profile, PROFILES)
    if table not in registry.all_tables():
        registry.find_table(table)
    cells = published.published_table(table)
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    metrics = list(dict.fromkeys(cell.metric for cell in cells))
    for metric in metrics:
        values = {(cell.row, cell.column): cell for cell in cells if cell.metric == metric}
        drawn = RichTable(title=f"{table}: published {metric}", title_justify="left")
        # The longer side runs down the page.
        down, across = (rows, columns) if len(rows) > len(columns) else (columns, rows)
        for heading in ("row" if down is rows else "column", *across):
            drawn.add_column(heading, overflow="fold")
        for name in down:
            shown = [
                values.get((name, other) if down is rows else (other, name)) for other in across
            ]
            if any(shown):
                drawn.add_row(
                    name,
                    *(
                        (
                            ""
                            if c is None
                            else (
                                "–"
                                if c.value is None
                                else f"{c.value}" + (f" ± {c.std}" if c.std else "")
                            )
                        )
                        for c in shown
                    ),
                )
        console.print(drawn)
    paper = table.split("/")[0]
    for claim in published.claims(paper):
        if claim.table in table.split("/")[1].replace("figure", "fig"):
            console.print(
                f"claim {claim.id}: {escape(claim.claim)} (in print: {claim.holds_in_print},"
                f" {claim.cells or 'no numbers'})"
            )
    spec = registry.all_tables()[table]
    if spec is not None:
        console.print(cards.terminal(registry.papers()[paper], profile, protocol))
        for line in cards.table_settings(spec):
            console.print(escape(line))
        for note in registry.papers()[paper].notes:
            console.print(f"note: {note}")
    else:
        known = (
            f" `python -m benchmarks plan {table}` computes its bytes."
            if bandwidth.accounts(table)
            else ""
        )
        console.print(
            f"{table} is not yet reproducible; its published numbers are data already.{known}"
        )


@app.command()
def plan(
    tables: Tables = None,
    profile: Profile = "paper",
    protocol: Protocol = "paper",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    plugin: Plugins = None,
    override: Override = None,
    link: Annotated[
        float | None,
        typer.Option(
            "--link",
            metavar="MBIT/S",
            help="adds how long a run's bytes take on one link of this speed",
        ),
    ] = None,
) -> None:
    """Cells, shared stages, data, FLOPs, bytes, memory and hours of a table, on any machine, before
    running it.

    Of some tables without a runner it has the bytes, from first principles.
    """
    if link is not None and link <= 0:
        raise SpecError(f"--link takes Mbit/s above 0, not {link:g}")
    names = _tables(_some_tables(tables), protocol, planned=True)
    runnable = [name for name in names if registry.all_tables().get(name) is not None]
    selection = _selection(
        profile, protocol, only or [], methods, seeds, "cpu", 1, False, plugin or []
    )
    if runnable:
        selection = replace(
            selection, overrides=_overrides(runnable, override or [], selection.plugins)
        )
    elif override or methods:
        raise SpecError(
            f"--set and --methods change runs, and {', '.join(names)} has no runner yet"
        )
    for name in names:
        if name in runnable:
            _plan_runs(name, selection, link)
        else:
            console.print(
                f"{name} has no runner yet; its bytes at the paper's scale can be computed all the"
                " same",
                soft_wrap=True,
            )
        found = bandwidth.accounts(name)
        if found:
            bandwidth.show(
                console,
                name,
                found if name in runnable else bandwidth.chosen(found, selection.only or {}),
                link,
            )


def _plan_runs(name: str, selection: Selection, link: float | None) -> None:
    """Print what the cells of a table would do."""
    import torch

    from benchmarks.running.plan import ASSUMED, make_plan
    from benchmarks.tables.cells import expand

    profile = selection.profile
    paper, table = registry.find_table(name)
    cells = expand(paper, table, selection)
    found = make_plan(cells)
    console.print(f"[bold]{name}[/] {table.title}, profile {profile}: {found.cells} cells")
    stages = RichTable(
        "stage", "asked for", "computed", "shared", title="Stages", title_justify="left"
    )
    for kind, needed in found.needed.items():
        stages.add_row(
            kind, str(needed), str(found.distinct[kind]), str(needed - found.distinct[kind])
        )
    console.print(stages)
    times = bandwidth.link_columns(link)
    wire = RichTable(
        "method",
        "up",
        "down",
        *times,
        title="Bytes of one run (largest column)",
        title_justify="left",
    )
    for method in found.bytes_up:
        up, down = found.bytes_up[method], found.bytes_down[method]
        wire.add_row(method, f"{up:,}", f"{down:,}", *bandwidth.link_times(up, down, link))
    console.print(wire)
    device, what = ("cuda", "GPU") if profile == "paper" else ("cpu", "core")
    if device == "cuda" and not torch.cuda.is_available():
        speed, how = ASSUMED, "assumed, not measured"
    else:
        speed, how = (
            found.measured_speed(device),
            "measured just now on this machine, with the clients' network",
        )
    console.print(
        f"training samples: {found.meter.training_samples:,}; predictions:"
        f" {found.meter.predicted_samples:,}; {found.meter.flops:.3g} FLOPs"
    )
    if speed:
        console.print(
            f"estimate: {found.hours(speed):.2f} {what}-hours at {speed:.1e} FLOP/s ({how}); peak"
            f" memory about {found.meter.peak_bytes / 2**30:.2f} GiB per process, beside the"
            " framework"
        )
    for asked, label in found.data.items():
        console.print(f"data: {asked}: {label}")
    for column, why in table.unmeasured:
        console.print(
            f"{published.format_column(dict(column))} is not measured: {why}", soft_wrap=True
        )
    pretrained = [
        dict(cell.config)
        for cell in cells
        if dict(cell.config).get("network.pretrained") == "imagenet"
    ]
    if profile == "paper" and pretrained:
        from models.networks.imagenet import IMAGENET, weight_path

        named = {
            str(value)
            for config in pretrained
            for entry, value in config.items()
            if entry.startswith("network.")
        }
        for network, file in (
            (network, file) for network, file in IMAGENET.items() if network in named
        ):
            there = weight_path(network).exists()
            console.print(
                f"weights: {network}:"
                f" {'present' if there else f'absent; put {file.url} at {weight_path(network)}'}"
            )


def _some_tables(tables: list[str] | None) -> list[str]:
    if not tables:
        known = ", ".join(
            name for name, table in registry.all_tables().items() if table is not None
        )
        raise SpecError(
            "which table? Try first: python -m benchmarks reproduce dlad/table2 (about two"
            f" minutes). Reproducible: {known}"
        )
    return tables


@app.command()
def reproduce(
    tables: Tables = None,
    profile: Profile = "smoke",
    protocol: Protocol = "paper",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    jobs: Jobs = 0,
    device: Device = "",
    threads: Threads = 1,
    require_real: RequireReal = False,
    plugin: Plugins = None,
    fresh: Fresh = False,
    results: Results = Path("results"),
    override: Override = None,
    precision: Precision = "fp32",
    compiled: Compile = "off",
    stacked: Stacked = 1,
    ray: Ray = "",
    num_cpus: RayCpus = 0,
    num_gpus: RayGpus = None,
    ray_cache: RayCache = "",
) -> None:
    """Regenerate tables: measured beside published, as CSV, Markdown and plot, with the paper's
    claims judged.
    """
    device = device or ("cuda" if profile == "paper" else "cpu")
    selection = _selection(
        profile,
        protocol,
        only or [],
        methods,
        seeds,
        device,
        threads,
        require_real,
        plugin or [],
        precision,
        compiled,
        stacked,
    )
    names = _tables(_some_tables(tables), protocol)
    selection = replace(selection, overrides=_overrides(names, override or [], selection.plugins))
    _check_execution(selection.execution, device)
    cluster = _cluster(ray, num_cpus, num_gpus, ray_cache, device, threads)
    _run(
        [registry.find_table(name) for name in dict.fromkeys(names)],
        selection,
        jobs,
        fresh,
        results,
        cluster,
    )


@app.command()
def sweep(
    table: Annotated[str, typer.Argument(help="paper/table")],
    epsilon: Annotated[str, typer.Option(help="privacy budgets, as in 1,3,10")] = "3.5,6,7.7,10",
    profile: Profile = "smoke",
    only: Only = None,
    methods: Methods = "",
    seeds: Seeds = "0",
    jobs: Jobs = 0,
    device: Device = "cpu",
    threads: Threads = 1,
    require_real: RequireReal = False,
    plugin: Plugins = None,
    fresh: Fresh = False,
    results: Results = Path("results"),
    override: Override = None,
    ray: Ray = "",
    num_cpus: RayCpus = 0,
    num_gpus: RayGpus = None,
    ray_cache: RayCache = "",
) -> None:
    """A table's rows over privacy budgets, and without one: as CSV and a plot of the metric against
    epsilon.
    """
    from benchmarks.tables.sweep import parse_epsilons, swept

    selection = _selection(
        profile, "paper", only or [], methods, seeds, device, threads, require_real, plugin or []
    )
    selection = replace(selection, overrides=_overrides([table], override or [], selection.plugins))
    cluster = _cluster(ray, num_cpus, num_gpus, ray_cache, device, threads)
    paper, found = registry.find_table(table)
    derived, left_out = swept(paper, found, selection, parse_epsilons(epsilon))
    for row in left_out:
        if row.key not in selection.add and row.key not in (selection.only or {}).get(
            "row", row.key
        ).split(","):
            continue
        console.print(f"[yellow]left out[/] {escape(row.title)}: {row.method} has no private form")
    _run([(paper, derived)], replace(selection, add=(), drop=()), jobs, fresh, results, cluster)


def _cluster(
    address: str, cpus: float, gpus: float | None, cache: str, device: str, threads: int
) -> Cluster | None:
    """The Ray cluster of the options, or None: then this machine must have the device. Raises
    SpecError.
    """
    if address:
        from benchmarks.running.ray_executor import cluster_of

        return cluster_of(address, cpus, gpus, cache, device, threads)
    if cpus or gpus is not None or cache:
        raise SpecError(
            "--num-cpus, --num-gpus and --ray-cache say how Ray runs cells; add --ray local, or a"
            " cluster's address"
        )
    if device != "cpu":
        _check_device(device)
    return None


def _run(
    tables: list[tuple[Paper, Table]],
    selection: Selection,
    jobs: int,
    fresh: bool,
    results: Path,
    cluster: Cluster | None = None,
) -> None:
    """Run the cells of `tables` that are not finished, and write and print each table."""
    from benchmarks.publish.display import Live, print_table
    from benchmarks.running import runner
    from benchmarks.tables import cards

    device, profile = selection.device, selection.profile
    runs = runner.prepare(tables, selection, results)
    progress = runner.take_finished(runs, fresh)
    for reason, count in progress.reasons.items():
        console.print(f"{count} cells to compute again: {reason}")
    todo = progress.total - progress.cached
    workers = jobs or runner.default_jobs(device)
    where = f"workers: {min(workers, todo)}" if cluster is None else f"by Ray ({cluster.address})"
    console.print(
        f"{progress.total} cells, {progress.cached} finished before, {todo} to run"
        + (f", {where} on {device}" if todo else "")
    )
    if todo:
        with Live(console, todo) as live:
            runner.execute(
                runs,
                jobs if cluster else workers,
                fresh,
                live.started,
                live.progressed,
                live.staged,
                live.done,
                cluster,
            )
    failed = 0
    for run in runs:
        failed += print_table(console, run, cards.markdown(run.paper, run.table, selection))
        if profile != "paper":
            console.print(f"[dim]{escape(cards.reduced(run.paper, profile))}[/]", soft_wrap=True)
        if profile == "smoke":
            console.print("A smoke table proves that the table runs, not what the paper found.")
    if failed:
        errors.print(
            f"[red]failed cells: {failed}[/]; reasons above, tracebacks in the .log beside each"
            " table"
        )
        raise typer.Exit(1)


@app.command()
def verify(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="a .records.jsonl, a table's CSV, or a folder of results"
        ),
    ],
    cells: Annotated[int, typer.Option(min=1, help="how many finished cells to draw")] = 3,
    seed: Annotated[int, typer.Option(help="of the draw")] = 0,
    jobs: Jobs = 0,
    plugin: Plugins = None,
) -> None:
    """Recompute a random sample of recorded cells from nothing: do they match? 0 yes, 1 no, 2 none
    could be verified.
    """
    from benchmarks.publish.display import Live
    from benchmarks.running import runner
    from benchmarks.running import verify as verifying
    from benchmarks.running.executors import Context, Event

    try:
        records = verifying.finished_records(results)
    except ResultsError as error:
        errors.print(f"[red]error:[/] {escape(str(error))}", soft_wrap=True)
        raise typer.Exit(2) from error
    chosen = verifying.draw(records, cells, seed)
    plugins = [str(path.resolve()) for path in plugin or []]
    workers = jobs or min(
        runner.default_jobs(record.machine.get("device", "cpu")) for record in chosen
    )
    console.print(
        f"{len(chosen)} of {len(records)} finished cells drawn with seed {seed}; workers:"
        f" {min(workers, len(chosen))}"
    )
    with (
        tempfile.TemporaryDirectory(prefix="fedtables-verify-") as folder,
        Live(console, len(chosen)) as live,
    ):

        def show_event(cell: Cell, event: Event) -> None:
            if event.kind == "started":
                live.started(event.worker, cell)
            elif event.kind == "progress":
                live.progressed(event.worker, event.text, event.share)
            elif event.stage is not None:
                live.staged(cell, event.stage)
            elif event.record is not None:
                live.done(event.worker, cell, event.record)

        context = Context(folder, 0.0, *runner.git_commit())
        verdicts = verifying.verify(chosen, plugins, workers, context, show_event, _check_device)
    table = RichTable(
        "cell",
        "recorded",
        "recomputed",
        "verdict",
        "at commit",
        "code",
        title="Verification",
        title_justify="left",
    )
    colours = {
        verifying.MATCH: "green",
        verifying.MISMATCH: "red",
        verifying.NOT_VERIFIABLE: "yellow",
    }
    for verdict in verdicts:
        old, new = verdict.record, verdict.again
        table.add_row(
            escape(f"{old.table} {old.row} {old.column} seed {old.seed} ({old.profile})"),
            *map(_values, (old, new)),
            f"[{colours[verdict.word]}]{verdict.word}[/]: {escape(verdict.why)}",
            str(old.machine.get("commit", ""))[:10]
            + (" with changes" if old.machine.get("dirty") else ""),
            "" if new is None else "the same" if new.code == old.code else "other",
        )
    console.print(table)
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in colours}
    console.print(", ".join(f"{count} {word}" for word, count in counts.items() if count))
    if code := verifying.exit_code(verdicts):
        raise typer.Exit(code)


def _values(record: Record | None) -> str:
    """The last value of each metric."""
    last = {m.metric: m.value for m in record.measurements} if record is not None else {}
    return escape(
        ", ".join(
            f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in last.items()
        )
    )


@app.command()
def check(
    method: Annotated[str, typer.Argument(help="a method's name")],
    plugin: Plugins = None,
) -> None:
    """The contract tests for one method: does it learn, repeat, send what it declares, keep private
    data private.
    """
    plugins = [str(path) for path in plugin or []]
    entry = registry.find_method(method, plugins)
    from benchmarks.contract import CHECKS, BrokenContractError, contract_method
    from benchmarks.running.execute import prepare_device
    from federation.execution import DEFAULT

    prepare_device("cpu", 1, DEFAULT)
    subject = contract_method(entry)
    console.print(f"{method}: {len(CHECKS)} promises, each with a small federation of real digits")
    broken = 0
    for contract_check in CHECKS:
        promise = str(contract_check.__doc__).split("\n")[0]
        try:
            contract_check(subject)
            console.print(f"[green]kept[/]    {promise}")
        except BrokenContractError as error:
            broken += 1
            console.print(f"[red]broken[/]  {promise} {escape(str(error))}")
        except Exception as error:
            raise SpecError(f"{method} does not run: {type(error).__name__}: {error}") from error
    if broken:
        raise typer.Exit(1)
    console.print(f"{method} keeps the contract")


@app.command()
def data(
    download: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="fetch a data set whose licence allows it; repeatable"),
    ] = None,
) -> None:
    """What data are present, verified, and how to get the rest."""
    from datasets import catalogue
    from datasets.source import content_digest

    for name in download or []:
        source = catalogue.source(name)
        if source.download is None:
            raise DataError(f"{source.title} cannot be fetched by a program. {source.how_to_get}")
        console.print(
            f"downloading {source.title} into {catalogue.data_home()}; licence: {source.licence}"
        )
        try:
            source.download(catalogue.data_home())
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"{source.title} could not be downloaded ({error}). Check the network, or fetch it"
                f" by hand. {source.how_to_get}"
            ) from error
    _data_table()
    unusable = 0
    for name, source in catalogue.sources().items():
        if source.embedded:
            try:
                if not catalogue.is_present(name):
                    console.print(f"[yellow]absent[/] {name}: {source.how_to_get}", soft_wrap=True)
                    continue
                resolved = catalogue.resolve(name)
                splits = catalogue.load(resolved.used)
                sizes = ", ".join(f"{split} {len(part):,}" for split, part in splits.items())
                found = {split: content_digest(splits[split]) for split in source.content}
                word = (
                    "[green]official content, by SHA-256[/]"
                    if found
                    else "whole; no official digest is known"
                )
                if found != source.content:
                    unusable += 1
                    word = "[red]not the official content[/]"
                console.print(f"{name}: {sizes}; {word}")
            except DataError as error:
                unusable += 1
                console.print(f"[red]unusable[/] {name}: {escape(str(error))}", soft_wrap=True)
    if unusable:
        raise typer.Exit(1)


@app.command()
def partition(
    dataset: Annotated[str, typer.Option(help="data set")] = "mnist",
    clients: Annotated[int, typer.Option(help="number of clients")] = 10,
    kind: Annotated[
        str,
        typer.Option(
            help=(
                "dlad (its four distributions), dirichlet-fedkd, dirichlet-feddf or"
                " dirichlet-feddf-released"
            )
        ),
    ] = "dlad",
    alpha: Annotated[float, typer.Option(help="Dirichlet concentration")] = 0.1,
    seed: Annotated[int, typer.Option(help="seed of the partition axis")] = 0,
    results: Annotated[Path, typer.Option(help="folder for the CSV and the picture")] = Path(
        "results"
    ),
) -> None:
    """Describe a partition as CSV (client, class, samples) and draw it as a clients x classes
    bubble plot.
    """
    from benchmarks.publish.display import draw_partition

    _choice(
        "--kind", kind, ("dlad", "dirichlet-fedkd", "dirichlet-feddf", "dirichlet-feddf-released")
    )
    for path in draw_partition(dataset, clients, kind, alpha, seed, results):
        console.print(f"wrote {path}")


@app.command()
def attack(
    dataset: Annotated[str, typer.Option(help="data set of the private images")] = "digits",
    network: Annotated[str, typer.Option(help="DLG and iDLG need a smooth one")] = "lenet-sigmoid",
    kind: Annotated[
        str, typer.Option("--attack", help="dlg, idlg or inverting (Inverting Gradients)")
    ] = "dlg",
    target: Annotated[
        str,
        typer.Option(help="what is attacked: fedavg (gradient, update), fedkd or fediod (answers)"),
    ] = "fedavg",
    images: Annotated[
        int, typer.Option(min=1, help="private images that are attacked, with --target fedavg")
    ] = 10,
    clients: Annotated[
        int, typer.Option(min=1, help="clients that are attacked, with the other targets")
    ] = 5,
    samples: Annotated[
        int, typer.Option(min=1, help="images per client, with the other targets")
    ] = 200,
    epochs: Annotated[
        int, typer.Option(min=1, help="of the clients' training, with the other targets")
    ] = 50,
    image_size: Annotated[
        int, typer.Option(min=0, help="pixels of a side; 0: the data set's own")
    ] = 0,
    iterations: Annotated[
        int, typer.Option(min=0, help="of the optimiser; 0: the attack's own default")
    ] = 0,
    restarts: Annotated[
        int, typer.Option(min=1, help="starts at most; another only where none succeeded")
    ] = 3,
    shares: Annotated[
        str, typer.Option(help="gradient, or update: the change of the weights by local training")
    ] = "gradient",
    batch_size: Annotated[int, typer.Option(min=1, help="images per local step")] = 1,
    local_steps: Annotated[
        int, typer.Option(min=0, help="steps of an update; 0: one, or five for answers")
    ] = 0,
    local_lr: Annotated[float, typer.Option(help="learning rate of these steps")] = 0.05,
    batch_norm: Annotated[
        str,
        typer.Option(help="batch normalisation by running statistics (eval) or batches' (train)"),
    ] = "eval",
    normalise: Annotated[
        bool, typer.Option(help="inputs as in training here, or in [0, 1] as in DLG's experiments")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="of images, weights and starts")] = 0,
    jobs: Annotated[
        int, typer.Option(min=0, help="worker processes; 0: one per core, one on a GPU")
    ] = 0,
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1, mps; answers are attacked on cpu")
    ] = "cpu",
    require_real: RequireReal = False,
    results: Annotated[Path, typer.Option(help="folder for CSV, record and picture")] = Path(
        "results"
    ),
) -> None:
    """Reconstruct private images from what a client shares, and show how near the attack comes."""
    from datasets import catalogue

    _choice("--attack", kind, ("dlg", "idlg", "inverting"))
    _choice("--target", target, ("fedavg", "fedkd", "fediod"))
    _choice("--shares", shares, ("gradient", "update"))
    _choice("--batch-norm", batch_norm, ("eval", "train"))
    if device != "cpu":
        _check_device(device)
    data = catalogue.resolve(dataset, require_real=require_real)

    from benchmarks.attacks import answers, attack
    from benchmarks.measures import reconstruction
    from benchmarks.publish.display import progress_bar
    from benchmarks.running.runner import default_jobs
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
        console.print(escape(str(work)), soft_wrap=True)
        with progress_bar(console) as bar:
            task = bar.add_task("messages", total=work.messages)
            found = module.run(work, jobs or default_jobs(device), lambda: bar.advance(task))
    except (ValueError, FloatingPointError) as error:
        raise SpecError(f"the attack cannot be run: {error}") from error
    table = RichTable()
    for heading in module.COLUMNS:
        table.add_column(heading.replace("_", " "), justify="right")
    for line in module.lines(found):
        table.add_row(*(_short(value) for value in line.values()))
    console.print(table)
    console.print(f"[bold]{module.verdict(found)}[/]", soft_wrap=True)
    for path in module.write(work, found, results / "attack"):
        console.print(f"wrote {path}", soft_wrap=True)


def _short(value: str) -> str:
    """A number with three digits after the point, or three that count; a text as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    return value if value.isdigit() else f"{number:.2e}" if abs(number) < 1e-2 else f"{number:.3f}"
