"""Counts the words and the sentences of the pages that a person reads."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
CHANGELOG = ROOT / "CHANGELOG.md"
GENERATED = frozenset({"gallery.md", "hours.md", "methods.md"})
"""Pages of docs/ that a command writes. Their sentences are held to the same limits."""
END = re.compile(
    r"(?<=[.!?])(?<!\bEq\.)(?<!\bFig\.)(?<!\bal\.)(?<!\bvs\.)(?<!\be\.g\.)(?<!\bi\.e\.)"
    r"[*_)\"]*\s+(?=[*_(\"]*[A-Z0-9])"
)
"""What stands between two sentences of a paragraph."""
LONG = 30
"""Words of the longest sentence that a page may have."""


@dataclass(frozen=True)
class Page:
    """What one page's text comes to.

    Attributes:
        words: words outside code blocks, those of tables and headings included.
        sentences: the sentences outside code blocks, tables and headings, in order.
    """

    path: Path
    words: int
    sentences: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Words per sentence; 0.0 of a page without sentences."""
        return sum(map(length, self.sentences)) / max(len(self.sentences), 1)

    @property
    def long(self) -> tuple[str, ...]:
        """Sentences of more words than a page may have."""
        return tuple(one for one in self.sentences if length(one) > LONG)


def length(text: str) -> int:
    """Words of a text: parts between spaces that hold a letter or a digit."""
    return sum(any(map(str.isalnum, part)) for part in text.split())


def pages() -> list[Path]:
    """Every page: at the root, in docs/, and beside the papers and results."""
    beside = ("benchmarks/papers", "results", "results/published", "results/published/*")
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *(path for folder in beside for path in sorted(ROOT.glob(f"{folder}/*.md"))),
    ]


def read(path: Path) -> Page:
    """Measures one Markdown page."""
    text = re.sub(r"^( *)```.*?^\1```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->|^---\n.*?^---\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`+[^`]+`+", "Code", text)
    prose = re.sub(r"^\s*(\||#|!!!|\?\?\?).*$", "", text, flags=re.MULTILINE)
    item = r"\s*(?:[-*]|\d+\.) "
    blocks = re.split(rf"\n\s*\n|\n(?={item})", prose)
    sentences = [
        sentence
        for block in blocks
        for sentence in END.split(" ".join(re.sub(f"^{item}", "", block).split()))
        if length(sentence)
    ]
    return Page(path, length(text), tuple(sentences))
