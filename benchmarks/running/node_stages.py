"""The stage cache of a node of a cluster: a folder of its own, and behind it that of the
command.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from filelock import Timeout

from benchmarks.running.stage_server import BUSY, HERE, StageServer
from federation.cache import Stage, StageCache, StageRequest, StoredTensors, read_stage
from federation.events import StageEvent
from results.files import write_atomic

WAIT = 0.3
"""Seconds between two questions for a stage that another node computes."""


class NodeStages(StageCache):
    """Stages in the node's `folder`; one that is not there is asked for before it is computed, and
    given away afterwards.

    `server` is the command's folder; `holder` is who this is to it, when it says which node
    computes what.
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[StageEvent], None] | None = None,
        newer_than: float = 0.0,
        device: torch.device | str = "cpu",
        owner: str = "",
        *,
        server: StageServer,
        holder: str,
    ):
        super().__init__(folder, report, newer_than, device, owner)
        self._home = folder
        self._server = server
        self._holder = holder

    @contextlib.contextmanager
    def _claimed(
        self, request: StageRequest, patience: float
    ) -> Iterator[tuple[Stage | None, str]]:
        """As of the parent, with the other nodes for other processes."""
        base = self.path(request)
        assert base is not None
        answer, name = HERE, self._name(base)
        if self._load(base)[0] is None:
            while (answer := self._server.ask(name, self._holder)) == BUSY:
                if patience == 0:
                    raise Timeout(name)
                time.sleep(WAIT)
            if answer == HERE:
                self._fetch(base)
        try:
            with super()._claimed(request, patience) as claim:
                yield claim
            if answer != HERE:
                self._give(base)
        finally:
            if answer != HERE:
                self._server.finish(name)

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._home))

    def _fetch(self, base: Path) -> None:
        """Bring a stage, and the tensors of others that it relies on, from the server to this
        node.
        """
        for path in _files(base):
            write_atomic(path, self._server.read(self._name(path)))
        for name, sha256 in _references(base):
            if not self.referenced([name, sha256]).intact():
                write_atomic(self._home / name, self._server.read(name))

    def _give(self, base: Path) -> None:
        """Take a stage to the server, with what it relies on; nothing that is there already."""
        body, header = _files(base)
        stage, _ = read_stage(base)
        assert stage is not None
        assert isinstance(stage.tensors, StoredTensors)
        for name, sha256 in [*_references(base), [self._name(body), stage.tensors.sha256]]:
            if not self._server.holds(name, sha256):
                self._server.write(name, (self._home / name).read_bytes())
        self._server.write(self._name(header), header.read_bytes())


def _files(base: Path) -> tuple[Path, Path]:
    """A stage's files in the order in which they have to be written."""
    return base.with_suffix(".safetensors"), base.with_suffix(".json")


def _references(base: Path) -> list[list[str]]:
    stage, _ = read_stage(base)
    return list(stage.info.get("references", ())) if stage is not None else []
