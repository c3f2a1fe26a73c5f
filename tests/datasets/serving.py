"""A server that is there, by path, in place of the official ones; and one that answers anything."""

import socket
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import requests


def serve(monkeypatch, files):
    """Every https address gives the file of its path in `files`, or an error."""

    def get(url, **_):
        parts = urlsplit(url)
        if parts.scheme != "https" or parts.path not in files:
            raise requests.ConnectionError(url)
        return Answer(files[parts.path])

    monkeypatch.setattr("requests.get", get)
    monkeypatch.setattr("fedtables.datasets.fetching.RETRIES", 0)


class Answer:
    headers = {}  # noqa: RUF012

    def __init__(self, content):
        self.content = content

    def raise_for_status(self):
        pass

    def iter_content(self, chunk_size):
        return [self.content]


@contextmanager
def answering(monkeypatch, *answers):
    """The address of a local server that gives one of the answers, bytes, to each who asks, and
    hangs up.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            for raw in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(raw)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        monkeypatch.setattr("fedtables.datasets.fetching.RETRIES", len(answers) - 1)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield f"http://127.0.0.1:{server.getsockname()[1]}/one.gz"
        thread.join(10)
