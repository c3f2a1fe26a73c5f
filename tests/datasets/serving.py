"""A server that is there, by path, in place of the official ones; and one that answers anything."""

import io
import socket
import threading
from contextlib import contextmanager
from urllib import request
from urllib.parse import urlsplit


def serve(monkeypatch, files):
    """Every https address gives the file of its path in `files`, or FileNotFoundError."""

    class Opener:
        def open(self, url, timeout):
            parts = urlsplit(url)
            if parts.scheme != "https" or parts.path not in files:
                raise FileNotFoundError(url)
            return Answer(files[parts.path])

    monkeypatch.setattr("datasets.fetching._opener", Opener)


class Answer(io.BytesIO):
    headers = {}  # noqa: RUF012


@contextmanager
def answering(monkeypatch, raw):
    """The address of a local server that gives the bytes `raw` to whoever asks, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(raw)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        opener = request.build_opener(request.ProxyHandler({}))
        monkeypatch.setattr("datasets.fetching._opener", lambda: opener)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/one.gz"
        thread.join(10)
