"""The stage cache: expensive parts that many cells share are computed once, by whichever process
asks first.

A stage is addressed by the digest of everything that determines it: its inputs (data, partition,
seeds, network, hyper-parameters, other stages) and the source of the code that computes it. On disk
it is a safetensors file and a sealed JSON beside it, which is written last and holds the tensors'
SHA-256; a stage that does not match is dropped and computed again. Locks belong to the operating
system, so a killed process never leaves one behind.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from filelock import FileLock, Timeout

from fedtables.federation.channel import encode, raw_bytes
from fedtables.federation.events import StageEvent
from fedtables.federation.samples import LOCAL_SECONDS, SECONDS, active_count, apart, counted
from fedtables.federation.surroundings import flags_of_run
from fedtables.results.files import (
    ResultsError,
    digest,
    displace,
    read_sealed_json,
    write_atomic,
    write_sealed_json,
)
from fedtables.results.sourcecode import code_digest

Together = Callable[[Sequence[int]], "list[Stage]"]
"""Computes the stages of two or more requests, by position, as one; each has the samples that were
`seen` for it."""
DAMAGED = "damaged cache entry, computed again"
SKEW = 60.0
"""Seconds by which a file server's clock may be ahead."""


class StoredTensors(Mapping[str, torch.Tensor]):
    """Tensors on disk by name, read whenever they are asked for: a thousand clients' models need
    not be in memory at once.

    What is read is checked against `sha256`; ResultsError is raised if it was changed or removed
    since.
    """

    def __init__(self, body: Path, sha256: str, device: torch.device | str):
        self.body = body
        self.sha256 = sha256
        self._device = device

    def intact(self) -> bool:
        """Whether the file is still there and as it was written."""
        try:
            return digest(self.body.read_bytes()) == self.sha256
        except OSError:
            return False

    def _read(self) -> dict[str, torch.Tensor]:
        return _read_tensors(self.body, self.sha256)

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._read()[name].to(self._device, copy=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


@functools.lru_cache(maxsize=2)  # a network's tensors are asked for one by one
def _read_tensors(body: Path, sha256: str) -> dict[str, torch.Tensor]:
    try:
        raw = body.read_bytes()
    except OSError:
        raw = b""
    if digest(raw) != sha256:
        raise ResultsError(
            f"{body} was changed or removed while a run relied on it; give the command again"
        )
    return safetensors.torch.load(raw)


@dataclass(frozen=True)
class Stage:
    """What a stage leaves: named tensors and plain JSON values."""

    tensors: Mapping[str, torch.Tensor]
    info: dict[str, Any] = field(default_factory=dict)
    """Tensors of other stages that this one relies on are listed under `references`; without them
    it counts as damaged."""
    seen: Mapping[str, Any] = field(default_factory=dict)
    """Samples that networks saw for it, by place, and seconds; the cache counts them."""


@dataclass(frozen=True)
class StageRequest:
    """A stage somebody needs."""

    kind: str
    """For example `local-model`; the folder it is stored in."""
    label: str
    """For people: which one it is."""
    inputs: dict[str, Any]
    """Plain values that determine the result."""
    compute: Callable[[], Stage]
    code: str
    """Name of the module whose source, with all it imports, determines the result."""

    def alone(self) -> list[Stage]:
        """The stage, computed by itself."""
        return [self.compute()]

    @functools.cached_property
    def key(self) -> str:
        return digest([self.kind, self.inputs, code_digest(self.code)])


def _computed(compute: Callable[[], Sequence[Stage]]) -> list[Stage]:
    """Stages, each with the samples seen for it, else all, and an equal share of the seconds."""
    with counted() as count, flags_of_run():
        stages = compute()
    seen = count.amounts()
    for name in (SECONDS, LOCAL_SECONDS):
        seen[name] /= len(stages)
    return [replace(stage, seen={**seen, **stage.seen}) for stage in stages]


def write_stage(base: Path, stage: Stage, **about: str) -> str:
    """Write `base`.safetensors and, last, `base`.json; returns the SHA-256 of the tensors."""
    raw = encode(stage.tensors)
    displace(_body(base))
    write_atomic(_body(base), raw)
    sha256 = digest(raw)
    header = {**about, "sha256": sha256, "info": stage.info, "seen": dict(stage.seen)}
    write_sealed_json(base.with_suffix(".json"), header)
    return sha256


def _body(base: Path) -> Path:
    return base.with_suffix(".safetensors")


def is_new(path: Path, newer_than: float) -> bool:
    """Whether a file is as new, and none of the future: then the clock was set back."""
    return not newer_than or newer_than <= path.stat().st_mtime <= time.time() + SKEW


def read_stage(
    base: Path, device: torch.device | str = "cpu", newer_than: float = 0.0
) -> tuple[Stage | None, str]:
    """The stage stored at `base`, or None with what is wrong with it; empty if there is none."""
    header, body = base.with_suffix(".json"), _body(base)
    try:
        if not is_new(header, newer_than):
            return None, ""
        meta = read_sealed_json(header) or {}
        raw = body.read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError:  # a directory, or no right to read it
        meta, raw = {}, b""
    fields = isinstance(meta.get("info"), dict) and isinstance(meta.get("seen"), dict)
    if not fields or digest(raw) != meta.get("sha256") or not _is_safetensors(raw):
        return None, f"{DAMAGED} ({base})"
    return Stage(StoredTensors(body, meta["sha256"], device), meta["info"], meta["seen"]), ""


def _is_safetensors(raw: bytes) -> bool:
    try:
        safetensors.torch.load(raw)
    except Exception:  # its own kind, and those of torch for types and shapes
        return False
    return True


class StageCache:
    """Stages on disk under `folder`, or in memory only when `folder` is None.

    `newer_than` (seconds since the epoch) makes older stages count as absent: that is `--fresh`.
    `owner` names whose stages are kept apart, empty for those of everybody: stages of everybody are
    taken where they are there, and none is given, for nobody knows what the owner's code has
    changed in its process.
    """

    def __init__(
        self,
        folder: Path | None,
        report: Callable[[StageEvent], None] | None = None,
        newer_than: float = 0.0,
        device: torch.device | str = "cpu",
        owner: str = "",
    ):
        self.folder = folder
        self.events: list[StageEvent] = []
        self._memory: dict[str, Stage] = {}
        self._report = report
        self.newer_than = newer_than
        self._device = device
        self._owner = owner

    def get(self, request: StageRequest) -> Stage:
        """The stage, from the cache or computed now."""
        return self.get_all([request])[0]

    def get_all(
        self,
        requests: Sequence[StageRequest],
        together: Together | None = None,
        groups: Sequence[Sequence[int]] = (),
    ) -> list[Stage]:
        """All stages, in order. Those that another process is computing are left to it, and waited
        for at the end. What is absent of a group, positions of requests, is computed `together`;
        `groups` have every position, if there are any.
        """
        alone = [[position] for position in range(len(requests))]
        found: dict[int, Stage] = {}
        # First pass: take what is free. Second pass: wait for the others, one at a time, since of
        # two processes each could wait for what the other holds.
        with apart():
            for patience, parts in ((0.0, groups or alone), (-1.0, alone)):
                for part in parts:
                    waiting = {p: requests[p] for p in part if p not in found}
                    found |= self._take(waiting, patience, together)
        stages = [found[position] for position in range(len(requests))]
        count = active_count()
        if count is not None:
            for request, stage in zip(requests, stages, strict=True):
                count.add_stage(request.key, stage.seen)
        return stages

    def _take(
        self,
        requests: Mapping[int, StageRequest],
        patience: float,
        together: Together | None,
    ) -> dict[int, Stage]:
        """Stages by position, without those that others lock `patience` seconds, -1 for ever."""
        taken: dict[int, Stage] = {}
        absent: dict[int, str] = {}
        with contextlib.ExitStack() as claims:
            for position, request in requests.items():
                stage, damage = self._of_everybody(request), ""
                try:
                    if stage is None:
                        stage, damage = claims.enter_context(self._claimed(request, patience))
                except Timeout:
                    continue
                if stage is None:
                    absent[position] = damage
                else:
                    self._log(request, computed=False)
                    taken[position] = stage
            started = time.monotonic()
            if together is not None and len(absent) > 1:
                computed = _computed(lambda: together(list(absent)))
            else:
                computed = [_computed(requests[position].alone)[0] for position in absent]
            seconds = (time.monotonic() - started) / max(1, len(absent))
            for (position, damage), stage in zip(absent.items(), computed, strict=True):
                taken[position] = self._keep(requests[position], stage)
                self._log(requests[position], computed=True, seconds=seconds, note=damage)
        return taken

    @contextlib.contextmanager
    def _claimed(
        self, request: StageRequest, patience: float
    ) -> Iterator[tuple[Stage | None, str]]:
        """The stage, or None with what is wrong with it: then nobody else computes it inside.

        Raises Timeout if another process holds its lock and `patience` is over.
        """
        base = self.path(request)
        if base is None:
            yield self._memory.get(request.key), ""
            return
        stage, _ = self._load(base)
        if stage is not None:
            yield stage, ""
            return
        base.parent.mkdir(parents=True, exist_ok=True)
        lock = base.with_name(f"{base.name}.lock")
        displace(lock)
        with FileLock(lock, timeout=patience):
            yield self._load(base)  # it may have been finished while we waited

    def _keep(self, request: StageRequest, stage: Stage) -> Stage:
        """A computed stage as it is stored, in files or in memory."""
        base = self.path(request)
        if base is None:
            self._memory[request.key] = stage
            return stage
        about = {"kind": request.kind, "label": request.label}
        code = {"module": request.code, "code": code_digest(request.code)}
        sha256 = write_stage(base, stage, **about, **code)
        return replace(stage, tensors=StoredTensors(_body(base), sha256, self._device))

    def path(self, request: StageRequest, owner: str | None = None) -> Path | None:
        """Where a stage of this or another owner is kept, without suffix; None in memory."""
        owner = self._owner if owner is None else owner
        name = digest([owner, request.key]) if owner else request.key
        return None if self.folder is None else self.folder / request.kind / name[:2] / name

    def _of_everybody(self, request: StageRequest) -> Stage | None:
        """The stage as everybody finds it, for an owner who keeps others apart."""
        base = self.path(request, "") if self._owner else None
        return None if base is None else self._load(base)[0]

    def reference(self, tensors: Mapping[str, torch.Tensor]) -> list[str] | None:
        """How to find again tensors that a stage of this cache holds already; None for others."""
        if (
            self.folder is None
            or not isinstance(tensors, StoredTensors)
            or not tensors.body.is_relative_to(self.folder)
        ):
            return None
        return [str(tensors.body.relative_to(self.folder)), tensors.sha256]

    def referenced(self, reference: Sequence[str]) -> StoredTensors:
        """The tensors of a `reference`."""
        assert self.folder is not None
        name, sha256 = reference
        return StoredTensors(self.folder / name, sha256, self._device)

    def _load(self, base: Path) -> tuple[Stage | None, str]:
        stage, damage = read_stage(base, self._device, self.newer_than)
        if stage is not None and not all(
            self.referenced(reference).intact() for reference in stage.info.get("references", ())
        ):
            return None, f"{DAMAGED} ({base})"
        return stage, damage

    def _log(
        self, request: StageRequest, *, computed: bool, seconds: float = 0.0, note: str = ""
    ) -> None:
        event = StageEvent(request.kind, request.label, request.key, computed, seconds, note)
        self.events.append(event)
        if self._report is not None:
            self._report(event)


def content_digest(tensors: Mapping[str, torch.Tensor], scope: str = "") -> str:
    """Digest of tensors by name, shape, dtype and bytes; on the `meta` device by `scope`."""
    parts = []
    for name in sorted(tensors):
        tensor = tensors[name]
        body = (
            scope if tensor.is_meta else digest(raw_bytes(tensor.detach().cpu()).numpy().tobytes())
        )
        parts.append([name, list(tensor.shape), str(tensor.dtype), body])
    return digest(parts)
