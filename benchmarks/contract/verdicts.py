"""What is found of one method: for `check`, and for the rows of plug-ins that a table has."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.contract.fits import BrokenContractError
from benchmarks.contract.promises import CHECKS, is_deterministic
from benchmarks.scenarios.small import small_method
from benchmarks.tables.registry import MethodEntry
from benchmarks.tables.spec import SpecError
from datasets.access import AccessError
from federation.method import Method
from results.files import cache_home, digest, read_sealed_json, write_sealed_json
from results.sourcecode import source_digest

KEPT, BROKEN, NOT_JUDGED = "kept", "broken", "not judged"


@dataclass(frozen=True)
class PromiseVerdict:
    """On one promise."""

    promise: str
    word: str
    """`KEPT`, `BROKEN` or `NOT_JUDGED`."""
    finding: str = ""
    place: str = ""
    """`FILE:LINE` of the method."""


def judge(entry: MethodEntry) -> Iterator[PromiseVerdict]:
    """Verdicts on all promises, one after another; of a method that does not repeat itself, nothing
    further is compared. Raises SpecError for a method that does not run.
    """
    subject, repeats = small_method(entry), True
    for check in CHECKS:
        promise = " ".join(str(check.__doc__).split("\n\n")[0].split())
        if not repeats:
            why = "no two runs can be compared"
            yield PromiseVerdict(promise, NOT_JUDGED, why, place(subject))
            continue
        try:
            check(subject)
            yield PromiseVerdict(promise, KEPT)
        except (BrokenContractError, AccessError) as error:
            repeats = check is not is_deterministic
            yield PromiseVerdict(promise, BROKEN, str(error), place(subject))
        except (Exception, SystemExit) as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:500]
            raise SpecError(
                f"{entry.name} does not run: {why} ({place(subject, error)})"
            ) from error


def place(method: Method, error: BaseException | None = None) -> str:
    """`FILE:LINE` of a method: of its line where `error` was raised, else of its `fit` or class."""
    kind = type(method)
    path = inspect.getsourcefile(kind)
    frames = traceback.extract_tb(error.__traceback__) if error else []
    lines = [frame.lineno for frame in frames if frame.filename == path]
    own = vars(kind).get("fit", kind)
    return f"{path}:{lines[-1] if lines else inspect.getsourcelines(own)[1]}"


def findings(entry: MethodEntry) -> tuple[str, ...]:
    """What promises a method does not keep, each once, as it was found; kept in the cache until
    its code or the contract's changes.
    """
    code = [entry.code, source_digest(__name__)]
    path = cache_home() / "contracts" / f"{digest([entry.name, code])}.json"
    with contextlib.suppress(FileNotFoundError):
        if kept := read_sealed_json(path):
            return tuple(kept["findings"])
    try:
        found = [v.finding for v in judge(entry) if v.word != KEPT]
    except SpecError as error:
        found = [str(error)]
    write_sealed_json(path, {"findings": (unique := list(dict.fromkeys(found)))})
    return tuple(unique)
