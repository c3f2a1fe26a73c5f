"""Official files by https, taken only if their SHA-256 is the one that is known."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib import request

from results.files import DataError, write_atomic

CHUNK = 2**20
SECONDS = 60
"""Without a byte, after which a server counts as gone."""


@dataclass(frozen=True)
class Download:
    """One file of a release: a gzip of one file, or a tar archive."""

    url: str
    sha256: str
    members: tuple[str, ...] = ()
    """Of a tar archive, what is kept, by path."""


def _opener() -> request.OpenerDirector:
    """Opens https alone, also where a server sends on to another address."""
    opener = request.OpenerDirector()
    for handler in (
        request.ProxyHandler(),
        request.HTTPSHandler(),
        request.HTTPRedirectHandler(),
        request.HTTPDefaultErrorHandler(),
        request.HTTPErrorProcessor(),
        request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def fetch(download: Download, path: Path) -> None:
    """Write what the address gives to `path`. Raises OSError if it gives nothing, or is not https;
    DataError if the content is another than is known.
    """
    found = hashlib.sha256()
    with _opener().open(download.url, timeout=SECONDS) as answer, path.open("wb") as stream:
        while chunk := answer.read(CHUNK):
            found.update(chunk)
            stream.write(chunk)
    if found.hexdigest() != download.sha256:
        raise DataError(
            f"{download.url} gave another file than the official one: its SHA-256 is"
            f" {found.hexdigest()}, not {download.sha256}. Nothing of it was kept."
        )


def fetch_all(downloads: Sequence[Download], folder: Path) -> None:
    """Fetch and unpack into `folder`: of a gzip its file, of an archive its `members`. Nothing is
    unpacked before all have come whole. Raises as `fetch` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download.") as place:
        packed = [Path(place) / str(number) for number in range(len(downloads))]
        for download, path in zip(downloads, packed, strict=True):
            fetch(download, path)
        try:
            for download, path in zip(downloads, packed, strict=True):
                _unpack(download, path, folder)
        except (tarfile.TarError, KeyError, EOFError, zlib.error) as error:
            raise DataError(f"{download.url} cannot be unpacked: {error}") from error


def _unpack(download: Download, path: Path, folder: Path) -> None:
    if not download.members:
        name = Path(download.url).name.removesuffix(".gz")
        with gzip.open(path) as stream:
            write_atomic(folder / name, stream.read())
        return
    with tarfile.open(path) as archive:
        for member in download.members:
            content = archive.extractfile(member)
            if content is None:
                raise KeyError(f"{member} is no file")
            write_atomic(folder / member, content.read())
