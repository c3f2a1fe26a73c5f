"""Official files by https, taken only if their SHA-256 is the one that is known."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib import request

from results.files import DataError, write_atomic

CHUNK = 2**20
MOST = 2**30
"""Bytes of a file, after which a server is not listened to any longer; the largest has 170 MB."""
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
    """Write what the address gives to `path`. Raises OSError if it gives nothing, is not https, or
    answers otherwise than HTTP says; DataError if the content is another than is known.
    """
    found, size = hashlib.sha256(), 0
    try:
        with _opener().open(download.url, timeout=SECONDS) as answer, path.open("wb") as stream:
            stated = answer.headers.get("Content-Length") or ""
            while chunk := answer.read(CHUNK):
                found.update(chunk)
                size += stream.write(chunk)
                if size > MOST:
                    raise OSError(f"{download.url} gave more than {MOST:,} bytes")
    except (HTTPException, ValueError) as error:  # ValueError: it sent on to what is no address
        raise OSError(f"{download.url} did not answer as HTTP says: {error!r}") from error
    if stated.isdecimal() and size != int(stated):
        raise OSError(f"{download.url} gave {size:,} of {int(stated):,} bytes")
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
