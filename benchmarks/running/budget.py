"""One budget for all rows of a table: how long a method runs, so that its networks learn from as
many samples as the table allows, on clients and at the server together.
"""

from collections.abc import Callable, Mapping

from fedtables.benchmarks.scenarios.assembly import assemble, make_method
from fedtables.benchmarks.scenarios.configuration import Config, Configuration
from fedtables.benchmarks.scenarios.scenario import DataSets
from fedtables.benchmarks.tables import registry
from fedtables.benchmarks.tables.cells import Cell
from fedtables.benchmarks.tables.spec import Scalar, SpecError
from fedtables.federation.cache import StageCache
from fedtables.federation.costs import Meter, Work, metering
from fedtables.federation.fitting import fit
from fedtables.federation.parts import Parts, Run
from fedtables.federation.seeds import Seeds
from fedtables.results.plugins import kept
from fedtables.results.record import BUDGET

LENGTHS = ("{method}.rounds", "{method}.epochs", "server.epochs", "local.epochs")
"""What may be a method's length, the first that it has: rounds, epochs of its own, of its last
stage at the server, of its clients."""

NOISE = "privacy.noise_multiplier"
GIVEN_NOISE = 100.0
"""While samples are counted: the smallest that keeps a budget takes long to find, and no count
hangs on it."""


def parts_on_meta(cell: Cell, data: DataSets, seeds: Seeds) -> Parts:
    """What its scenario contributes to a cell's federation, with sizes alone: once for cells that
    lie side by side and differ in their methods' fields alone.

    Raises DataError and ValueError as the cell's scenario.
    """
    own = f"{cell.method}."
    return _parts(tuple(pair for pair in cell.config if not pair[0].startswith(own)), data, seeds)


@kept(8)  # a column has as many as its rows use data in different ways
def _parts(config: tuple[tuple[str, Scalar], ...], data: DataSets, seeds: Seeds) -> Parts:
    configuration = Configuration.parse(dict(config))
    scenario = registry.find_scenario(configuration.data.task)
    return scenario.parts(configuration, data, seeds, "meta")


def length(cell: Cell, data: DataSets) -> dict[str, int]:
    """The setting that is the length of the cell's method, as its table's budget has it; empty for
    a table without one.

    The fit is followed on the `meta` device for that, as `plan` does. Raises SpecError as
    `within_budget`.
    """
    config = dict(cell.config)
    if BUDGET not in config:
        return {}
    seeds = Seeds.moving(cell.seed_axes, cell.seed)
    parts = parts_on_meta(cell, data, seeds)
    entry = registry.find_method(cell.method)
    meter = Meter()
    meter.kind = cell.key  # steps of one name are followed once for all lengths

    def seen(changed: Config) -> int:
        if changed.get(NOISE) == 0:
            changed = {**changed, NOISE: GIVEN_NOISE}
        method = make_method(entry, changed)
        run = Run(seeds, StageCache(None, device="meta"), "meta")
        federation = assemble(parts, Configuration.parse(changed), type(method), run)
        with metering(meter), meter.having(work=Work()):
            fit(federation, method)
            return meter.work.training_samples

    return within_budget(config, cell.method, seen)


def within_budget(config: Config, method: str, seen: Callable[[Config], int]) -> dict[str, int]:
    """The length of `method`, by its setting's name, that comes within half a round or epoch of the
    budget.

    `seen` tells of how many samples networks learn under a configuration, of which there are more
    for every round or epoch: as many more for each, or nearly, where rounds draw their clients.
    Raises SpecError if the shortest run takes more than the budget, or if nothing makes it longer.
    """
    budget = int(config[BUDGET])
    names = [name.format(method=method) for name in LENGTHS]
    for name in names:
        if name not in config:
            continue
        of = {rounds: seen({**config, name: rounds}) for rounds in (1, 2)}
        if of[2] == of[1]:
            continue  # a mode of the method that has no such length
        if of[1] > budget:
            raise SpecError(
                f"{BUDGET}={budget:,} is less than the shortest run of {method} takes,"
                f" {of[1]:,} with {name}=1; raise it, or shorten what else it trains"
            )
        while True:
            rounds, each = _guess(of, budget)
            if rounds in of:
                break
            of[rounds] = seen({**config, name: rounds})
            if abs(of[rounds] - budget) <= each / 2:
                break
        return {name: min(of, key=lambda rounds: abs(of[rounds] - budget))}
    raise SpecError(
        f"{BUDGET} cannot set how long {method} runs: none of {', '.join(names)} makes it longer"
    )


def _guess(of: Mapping[int, int], budget: int) -> tuple[int, float]:
    """The length whose samples are the budget, on the line through the nearest lengths that are
    known to take less and more, or through the two longest; and how much a round is there.
    """
    below = max(rounds for rounds, samples in of.items() if samples <= budget)
    above = min((rounds for rounds in of if of[rounds] > budget), default=max(of))
    if above == below:
        below = max(rounds for rounds in of if rounds < above)
    each = (of[above] - of[below]) / (above - below)
    return max(1, below + round((budget - of[below]) / each)), each
