"""Official files by https, taken only if their SHA-256 or MD5 is the one that is known."""

import gzip
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from fedtables.results.files import DataError, write_atomic

SECONDS = 60
"""Without a byte, after which a server counts as gone."""
LOCAL = ("localhost", "127.0.0.1")
"""Machines that may be asked without https: this one."""
RETRIES = 2
"""Further tries of a file that did not come whole."""


@dataclass(frozen=True)
class Download:
    """One file of a release: a gzip of one file, a tar archive, or an npz, which stays as it is."""

    url: str
    sha256: str
    members: tuple[str, ...] = ()
    """Of a tar archive, what is kept, by path."""
    md5: str = ""
    """Where a release publishes no SHA-256: then `sha256` is empty."""

    @property
    def known(self) -> tuple[str, str]:
        """The name of the digest that is known, and its value."""
        return ("SHA-256", self.sha256) if self.sha256 else ("MD5", self.md5)


def fetch(download: Download, path: Path) -> None:
    """Write what the address gives to `path`. Raises OSError if it gives nothing, or answers
    otherwise than HTTP says; DataError for plain http and for other content than is known.
    """
    import pooch  # takes long, and listing data sets needs none
    import requests

    _check_https(download.url)
    kind, known = download.known
    files = pooch.create(
        path.parent,
        base_url="",
        registry={path.name: f"{kind.replace('-', '').lower()}:{known}"},
        urls={path.name: download.url},
        retry_if_failed=RETRIES,
    )
    downloader = pooch.HTTPDownloader(
        timeout=SECONDS,
        progressbar=sys.stderr.isatty(),
        headers={"Accept-Encoding": "identity"},  # else a gzip may come unpacked
        hooks={"response": _check_redirect},
    )
    try:
        files.fetch(path.name, downloader=downloader)
    except requests.RequestException as error:
        raise OSError(f"{download.url} did not answer as HTTP says: {error!r}") from error
    except ValueError as error:
        raise DataError(
            f"{download.url} gave another file than the official one, whose {kind} is {known}."
            " Nothing of it was kept."
        ) from error


def _check_https(url: str) -> None:
    address = urlsplit(url)
    if address.scheme != "https" and address.hostname not in LOCAL:
        raise DataError(f"{url} is not fetched, since it is none of https")


def _check_redirect(response: Any, **options: Any) -> None:
    if response.is_redirect:
        _check_https(urljoin(response.url, response.headers["location"]))


def fetch_all(downloads: Sequence[Download], folder: Path) -> None:
    """Fetch and unpack into `folder`: of a gzip its file, of an archive its `members`, an npz as it
    is. Nothing is unpacked before all have come whole. Raises as `fetch` does.
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
    if download.url.endswith(".npz"):
        path.replace(folder / Path(download.url).name)
        return
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
