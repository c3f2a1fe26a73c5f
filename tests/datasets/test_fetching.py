"""Downloads: kept only with the SHA-256 that is known."""

import gzip
import hashlib
import io
import tarfile

import pytest

from fedtables.datasets.fetching import Download, fetch_all
from fedtables.datasets.source import DataError
from tests.datasets.serving import answering, serve


def download(name, content, *members):
    return Download(f"https://example.org/{name}", hashlib.sha256(content).hexdigest(), members)


def packed_tar(**files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"folder/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return raw.getvalue()


def test_a_gzip_leaves_its_file_and_an_archive_what_is_asked_for(tmp_path, monkeypatch):
    one, tar = gzip.compress(b"one"), packed_tar(a=b"A", b=b"B", c=b"C")
    serve(monkeypatch, {"/one.gz": one, "/all.tar.gz": tar})
    wanted = [download("one.gz", one), download("all.tar.gz", tar, "folder/a", "folder/c")]
    fetch_all(wanted, tmp_path / "new" / "home")
    found = {p.relative_to(tmp_path / "new" / "home"): p for p in (tmp_path / "new").rglob("*")}
    assert {str(name): path.read_bytes() for name, path in found.items() if path.is_file()} == {
        "one": b"one",
        "folder/a": b"A",
        "folder/c": b"C",
    }


def test_an_npz_is_kept_as_it_is_and_known_by_its_md5(tmp_path, monkeypatch):
    serve(monkeypatch, {"/one.npz": b"arrays"})
    known = hashlib.md5(b"arrays").hexdigest()
    fetch_all([Download("https://example.org/one.npz", "", md5=known)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]
    assert (tmp_path / "one.npz").read_bytes() == b"arrays"
    with pytest.raises(DataError, match=f"the official one, whose MD5 is {'0' * 32}. Nothing"):
        fetch_all([Download("https://example.org/one.npz", "", md5="0" * 32)], tmp_path / "other")
    assert list((tmp_path / "other").iterdir()) == []


def test_nothing_is_kept_if_one_of_several_has_another_content(tmp_path, monkeypatch):
    one, two = gzip.compress(b"one"), gzip.compress(b"two")
    serve(monkeypatch, {"/one.gz": one, "/two.gz": two[:-1]})
    with pytest.raises(DataError, match=r"two\.gz gave another file than the official one"):
        fetch_all([download("one.gz", one), download("two.gz", two)], tmp_path)
    assert list(tmp_path.iterdir()) == []


WHOLE = gzip.compress(b"one", mtime=0)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "did not answer as HTTP says: ConnectionError"),
        (b"nonsense\r\n\r\n", "did not answer as HTTP says: ConnectionError"),
        (b"HTTP/1.1 twohundred OK\r\n\r\n", "did not answer as HTTP says"),
        (OK + b"Content-Length: 90\r\n\r\n" + WHOLE, "did not answer as HTTP says"),
        (OK + b"Content-Length: 9\r\n\r\n" + WHOLE, "another file than the official"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "did not answer as HTTP says"),
        (OK + b"X: y\r\n" * 200, "did not answer as HTTP says"),
        (b"HTTP/1.1 404 Gone\r\n\r\n", "404 Client Error"),
    ],
)
def test_an_answer_that_http_does_not_allow_is_refused_and_nothing_kept(
    tmp_path, monkeypatch, raw, message
):
    with answering(monkeypatch, raw) as url:
        wanted = Download(url, hashlib.sha256(WHOLE).hexdigest())
        with pytest.raises((OSError, DataError), match=message) as caught:
            fetch_all([wanted], tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_did_not_come_whole_is_asked_for_again(tmp_path, monkeypatch):
    answers = (OK + b"Content-Length: 90\r\n\r\n" + WHOLE, OK + b"\r\n" + WHOLE)
    with answering(monkeypatch, *answers) as url:
        fetch_all([Download(url, hashlib.sha256(WHOLE).hexdigest())], tmp_path)
    assert (tmp_path / "one").read_bytes() == b"one"


def test_an_archive_without_what_is_asked_for_is_named(tmp_path, monkeypatch):
    tar = packed_tar(a=b"A")
    serve(monkeypatch, {"/all.tar.gz": tar})
    with pytest.raises(DataError, match=r"all\.tar\.gz cannot be unpacked: .*folder/b"):
        fetch_all([download("all.tar.gz", tar, "folder/b")], tmp_path)


def test_nobody_is_led_away_from_https(tmp_path, monkeypatch):
    away = b"HTTP/1.1 302 Found\r\nLocation: http://example.org/one.gz\r\n\r\n"
    with answering(monkeypatch, away) as url:
        with pytest.raises(DataError, match=r"http://example\.org/one\.gz is not fetched"):
            fetch_all([Download(url, hashlib.sha256(WHOLE).hexdigest())], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_plain_http_is_asked_of_this_machine_alone(tmp_path):
    with pytest.raises(DataError, match=r"http://example\.org/one\.gz is not fetched, .*https"):
        fetch_all([Download("http://example.org/one.gz", "0" * 64)], tmp_path)
