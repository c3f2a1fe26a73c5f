"""What a command line, a notebook or a file asks for: one set of options, each said once."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.readers import (
    check_device_name,
    choice,
    number_or_none,
    one_of,
    read_only,
    read_seeds,
    read_settings,
    several,
    text,
    whether,
)
from fedtables.benchmarks.tables.spec import (
    PROFILES,
    PROTOCOLS,
    Scalar,
    SpecError,
    usual_device,
    usual_execution,
)
from fedtables.federation.execution import COMPILE, PRECISIONS, Execution
from fedtables.reports.tables.margins import LOOKS
from fedtables.results.command_line import NUMBER, WHOLE, number, path, whole
from fedtables.results.files import RUNS
from fedtables.results.numbers import shortened

S = TypeVar("S")
TENSORBOARD = "tensorboard"


def option(
    default: Any,
    read: Callable[[Any], Any],
    help_text: str,
    *names: str,
    on_command_line: Any = str,
    shown_as: Any = typer.Option,
    **more: Any,
) -> Any:
    """A field of `Request`: `read` makes its value of what the command line has, which typer takes
    as `on_command_line`, or of a value in a notebook or a file. It raises TypeError for a value of
    another kind.
    """
    shown = Annotated[on_command_line, shown_as(*names, help=help_text, **more)]
    unsaid = default
    if isinstance(default, tuple) and on_command_line is str:
        unsaid = ",".join(map(str, default))
    about = {"read": read, "option": shown, "unsaid": unsaid, "names": names}
    return field(default=default, metadata={**about, "of_paths": more.get("parser") is path})


def switch(help_text: str, *names: str, **more: Any) -> Any:
    """An option that is given or not; it starts off."""
    more = {"show_default": False, **more}
    return option(False, whether, help_text, *names, on_command_line=bool, **more)


def quantity(
    default: Any, read: Callable[[Any], Any], help_text: str, *names: str, **more: Any
) -> Any:
    """An option that takes a number."""
    kind = int if isinstance(default, int) else float
    more = {"metavar": WHOLE if kind is int else NUMBER, **more}
    return option(default, read, help_text, *names, on_command_line=kind, parser=read, **more)


def place(default: Path | None, help_text: str, metavar: str = "PATH") -> Any:
    """An option that names a file or folder."""

    def read(value: Any) -> Path | None:
        return None if value is None else path(value)

    return option(default, read, help_text, on_command_line=Path, parser=path, metavar=metavar)


def key_of(about: Field[Any]) -> str:
    """How a file calls an option: as the command line does, without dashes before it."""
    names = about.metadata["names"] or (about.name.replace("_", "-"),)
    return str(names[0]).lstrip("-")


def tables_like(begun: str) -> list[str]:
    """Names of papers and tables that begin so."""
    known = [*registry.papers(), *registry.all_tables()]
    return [name for name in known if name.startswith(begun)]


@dataclass(frozen=True)
class Request:
    """The options of a run. Make one with `requested`, which reads and checks the values.

    The help text of a field says what the option means.
    """

    tables: tuple[str, ...] = option(
        (),
        lambda value: tuple(map(text, several(value))),
        "paper/table as `list` names it, or a paper for all its tables",
        on_command_line=list[str] | None,
        shown_as=typer.Argument,
        autocompletion=tables_like,
    )
    profile: str = option(
        "smoke",
        one_of("--profile", PROFILES),
        "smoke: embedded data, seconds to minutes. cpu: real data, reduced. gpu: the paper's"
        " networks, short schedules, CUDA. paper: full scale, CUDA",
        autocompletion=lambda: PROFILES,
    )
    protocol: str = option(
        "paper",
        one_of("--protocol", PROTOCOLS),
        "paper, or released: follow the authors' code where it differs from the paper",
        autocompletion=lambda: PROTOCOLS,
    )
    only: Mapping[str, tuple[str, ...]] | None = option(
        None,
        read_only,
        "run only these columns or rows, as in dataset=mnist or row=fedavg,feddf; repeatable",
        on_command_line=list[str] | None,
        metavar="KEY=VALUE",
    )
    methods: str = option("", text, "add rows (+NAME) or drop rows (-NAME)", metavar="+NAME,-NAME")
    seeds: tuple[int, ...] = option(
        (0,), read_seeds, "seeds, as in 0,1,2; tables show mean and standard deviation"
    )
    settings: Mapping[str, Scalar] | None = option(
        None,
        read_settings,
        "change a setting for this run; its files get a name of their own; repeatable",
        "--set",
        on_command_line=list[str] | None,
        metavar="SETTING=VALUE",
    )
    plugins: tuple[str, ...] = option(
        (),
        lambda value: tuple(str(path(one)) for one in several(value)),
        "file or package with a method, networks or data sets; repeatable",
        "--plugin",
        on_command_line=list[Path] | None,
        parser=path,
        metavar="PATH",
    )
    require_real: bool = switch("fail where real data are absent, instead of using stand-ins")
    stand_ins: bool = switch("let stand-ins be used by the profile paper, which refuses them")
    jobs: int = quantity(0, whole(), "worker processes; 0: one per core, or one per GPU on cuda")
    device: str = option(
        "", check_device_name, "cpu, cuda, cuda:1 or mps; default: cuda for gpu and paper, else cpu"
    )
    threads: int = quantity(
        1,
        whole(1, 1024),
        "threads per worker; two workers of one thread are faster than one of two",
    )
    precision: str = option(
        "",
        one_of("--precision", ("", *PRECISIONS)),
        "precision of training: fp32, tf32 (CUDA) or bf16 (autocast); default: bf16 for gpu and"
        " paper, else fp32; files get a name of their own",
    )
    compiled: str = option(
        "",
        one_of("--compile", ("", *COMPILE)),
        "how training steps run: off, default (torch.compile), graphs (CUDA graphs); default:"
        " graphs for gpu and paper, else off",
        "--compile",
    )
    stacked: int = quantity(
        1,
        whole(1),
        "train this many clients at once, one step of each in turn; for small networks on GPUs,"
        " with --compile graphs",
    )
    ray: str = option(
        "",
        text,
        "run cells as tasks on Ray: local, auto, or host:port of a cluster",
        "--ray",
        metavar="ADDRESS",
    )
    num_cpus: float = quantity(0.0, number(), "with --ray: CPUs per cell; 0: as many as --threads")
    num_gpus: float | None = quantity(
        None,
        number_or_none,
        "with --ray: GPUs per cell; 0.25 puts four cells on one GPU; default: 1 on cuda",
    )
    decide: bool = switch(
        "add seeds where a comparison of a claim is open, until all are closed or have --most"
    )
    most: int = quantity(
        LOOKS[-1],
        whole(LOOKS[0], LOOKS[-1]),
        "with --decide: seeds of a cell at most; it looks at 3, 6 and 12",
    )
    fresh: bool = switch("compute everything again, even what is cached")
    results: Path = place(RUNS, "folder for CSV, plots and records")  # noqa: RUF009
    replace: bool = switch(
        "allow a table's files to lose cells that this command neither computes nor finds"
    )
    plain: bool = switch(
        "draw pictures without title and footnote, for a paper whose caption has both"
    )
    minutes: float = quantity(
        0.0,
        number(),
        "stop after this many minutes; the same command goes on later; 0: no limit",
    )
    log_to: str = option(
        "",
        one_of("--log-to", ("", TENSORBOARD)),
        "write losses, metrics, bytes and epsilon to RESULTS/tensorboard during the run",
        metavar=TENSORBOARD,
    )

    @property
    def run_device(self) -> str:
        """The device: the profile's usual one where none is asked for."""
        return self.device or usual_device(self.profile)

    @property
    def execution(self) -> Execution:
        """How training runs. Raises SpecError for a combination that there is none of."""
        chosen = bool(self.precision or self.compiled)
        usual = usual_execution(self.profile, self.run_device, chosen=chosen)
        try:
            return Execution(
                self.precision or usual.precision, self.compiled or usual.compile, self.stacked
            )
        except ValueError as error:
            raise SpecError(f"--stacked {self.stacked}: {error}") from error


def requested(**given: Any) -> Request:
    """The request of these options, as texts of a command line or as values.

    Raises SpecError for a value that an option does not take, or an option that there is none of.
    """
    for name in given:
        choice("option", name, [about.name for about in fields(Request)])
    return _read(Request, given)


def _read(kind: type[S], given: Mapping[str, Any]) -> S:
    known = fields(cast(Any, kind))
    return kind(**{one.name: read_option(one, given.get(one.name, one.default)) for one in known})


def read_option(about: Field[Any], value: Any) -> Any:
    """The value of an option. Raises SpecError for one that it does not take."""
    try:
        return about.metadata["read"](value)
    except (ValueError, typer.BadParameter) as error:
        raise SpecError(f"{key_of(about)}: {error}") from None
    except TypeError:
        raise SpecError(f"{key_of(about)}: it cannot be {shortened(value)}") from None


def takes(
    *names: str, of: type = Request, but: Collection[str] = (), typed: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function gets what these options ask for, or all `of` the class `but` some,
    as its first argument, and runs with the plug-ins among them in use. Its signature names them,
    `typed` as in Python or else as typer reads them, and `options` has their fields.
    """
    hints = get_type_hints(of)
    options = [about for about in fields(of) if about.name in (names or hints.keys() - but)]
    asks = {about.name for about in options}

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*arguments: Any, **given: Any) -> Any:
            asked = {about.name: given.pop(about.name) for about in options if about.name in given}
            read: Any = _read(of, asked)
            with registry.used(read.plugins) if "plugins" in asks else contextlib.nullcontext():
                return function(read, *arguments, **given)

        _, *parameters = inspect.signature(function, eval_str=True).parameters.values()
        parameters += [
            inspect.Parameter(
                about.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=about.default if typed else about.metadata["unsaid"],
                annotation=hints[about.name] if typed else about.metadata["option"],
            )
            for about in options
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.options = (*options, *getattr(function, "options", ()))  # type: ignore[attr-defined]
        return run

    return decorate
