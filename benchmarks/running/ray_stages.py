"""Stages in a cluster whose nodes have no folder in common: each keeps its own, and behind it is
that of the command.

Files go by their path in the folder. What a node fetches or gives is checked where it is read, as
anything on disk.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import Timeout

from fedtables.federation.cache import Stage, StageCache, StageRequest, StoredTensors, read_stage
from fedtables.results.files import write_atomic

HERE, YOURS, BUSY = "here", "yours", "busy"
WAIT = 0.3
"""Seconds between two questions for a stage that another node computes."""


class StageServer(StageCache):
    """The command's own stage folder, and which node computes which stage."""

    folder: Path

    def __init__(self, folder: str, newer_than: float = 0.0):
        super().__init__(Path(folder), newer_than=newer_than)
        self._holders: dict[str, str] = {}

    def ask(self, base: str, holder: str) -> str:
        """Where the stage `base` (its files without suffix) comes from: it is here, the holder's to
        compute, or another's.
        """
        if self._load(self.folder / base)[0] is not None:
            return HERE
        return YOURS if self._holders.setdefault(base, holder) == holder else BUSY

    def holds(self, name: str, sha256: str) -> bool:
        """Whether the tensors `name` are here, undamaged."""
        return self.referenced([name, sha256]).intact()

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self.folder / name, content)

    def finish(self, base: str) -> None:
        """The stage's holder is done with it, whether it succeeded or not."""
        self._holders.pop(base, None)

    def release(self, holder: str) -> None:
        """The holder is gone: what it was computing is free again."""
        self._holders = {base: other for base, other in self._holders.items() if other != holder}


class NodeStages(StageCache):
    """Stages in the node's folder; one that is not there is asked for before it is computed, and
    given away afterwards.

    `server` is a StageServer of the command's folder; `holder` is who this is to it, when it says
    which node computes what. The other arguments are StageCache's.
    """

    folder: Path

    def __init__(self, *arguments: Any, server: StageServer, holder: str):
        super().__init__(*arguments)
        self._server = server
        self._holder = holder

    @contextlib.contextmanager
    def _claimed(
        self, request: StageRequest, patience: float
    ) -> Iterator[tuple[Stage | None, str]]:
        """As of the parent, with the other nodes for other processes."""
        base = self.path(request)
        assert base is not None
        answer, name = HERE, str(base.relative_to(self.folder))
        if self._load(base)[0] is None:
            while (answer := self._server.ask(name, self._holder)) == BUSY:
                if patience == 0:
                    raise Timeout(name)
                time.sleep(WAIT)
            if answer == HERE:
                self._fetch(name)
        try:
            with super()._claimed(request, patience) as claim:
                yield claim
            if answer != HERE:
                self._give(name)
        finally:
            if answer != HERE:
                self._server.finish(name)

    def _fetch(self, base: str) -> None:
        """Bring a stage, and the tensors of others that it relies on, to this node; the header is
        written after the tensors.
        """
        for name in (f"{base}.safetensors", f"{base}.json"):
            write_atomic(self.folder / name, self._server.read(name))
        for name, sha256 in self._tensors(base):
            if not self.referenced([name, sha256]).intact():
                write_atomic(self.folder / name, self._server.read(name))

    def _give(self, base: str) -> None:
        """Take a stage to the server, with what it relies on; nothing that is there already."""
        for name, sha256 in self._tensors(base):
            if not self._server.holds(name, sha256):
                self._server.write(name, (self.folder / name).read_bytes())
        header = f"{base}.json"
        self._server.write(header, (self.folder / header).read_bytes())

    def _tensors(self, base: str) -> list[list[str]]:
        """Files of tensors that a stage here has or relies on, with their SHA-256."""
        stage, _ = read_stage(self.folder / base)
        if stage is None:
            return []
        assert isinstance(stage.tensors, StoredTensors)
        return [*stage.info.get("references", ()), [f"{base}.safetensors", stage.tensors.sha256]]
