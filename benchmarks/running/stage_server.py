"""The command's stage folder as the nodes of a cluster see it."""

from __future__ import annotations

from pathlib import Path

from results.files import write_atomic

HERE, YOURS, BUSY = "here", "yours", "busy"


class StageServer:
    """The command's own stage folder, for nodes that have another, and who of them computes which
    stage.

    Files go by their path in the folder. What a node fetches or gives is checked where it is read,
    as anything on disk.
    """

    def __init__(self, folder: str, newer_than: float = 0.0):
        # This imports torch: the command itself has no use for it.
        from federation.cache import StageCache

        self._folder = Path(folder)
        self._cache = StageCache(self._folder, newer_than=newer_than)
        self._holders: dict[str, str] = {}

    def ask(self, base: str, holder: str) -> str:
        """Where the stage `base` (its files without suffix) comes from: it is here, the holder's to
        compute, or another's.
        """
        from federation.cache import read_stage

        stage, _ = read_stage(self._folder / base, newer_than=self._cache.newer_than)
        if stage is not None and all(
            self.holds(*reference) for reference in stage.info.get("references", ())
        ):
            return HERE
        return YOURS if self._holders.setdefault(base, holder) == holder else BUSY

    def holds(self, name: str, sha256: str) -> bool:
        """Whether the tensors `name` are here, undamaged."""
        return self._cache.referenced([name, sha256]).intact()

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def write(self, name: str, content: bytes) -> None:
        write_atomic(self._folder / name, content)

    def finish(self, base: str) -> None:
        """The stage's holder is done with it, whether it succeeded or not."""
        self._holders.pop(base, None)

    def release(self, holder: str) -> None:
        """The holder is gone: what it was computing is free again."""
        self._holders = {base: other for base, other in self._holders.items() if other != holder}
