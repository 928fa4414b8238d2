"""What tests/models/test_reports.py and tests/inside/models/test_reports.py share."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
import scipy.sparse as sp
from kit.reports import arrays
from sklearn.datasets import dump_svmlight_file

import streamcut


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, seed in (("train", 0), ("test", 1)):
        X, y = arrays(seed=seed)
        dump_svmlight_file(sp.csr_matrix(X), y, str(folder / f"{name}.svm"), zero_based=False)
        streamcut.convert(str(folder / f"{name}.svm"), str(folder / f"{name}.zarr"), n_features=15)
    return str(folder / "train.zarr"), str(folder / "test.zarr")


class _Page(HTMLParser):
    """Tags that are open, what links out and within, ids, table cells, titles (all digits of numbers), and the JSON."""

    VOID = ("meta", "link", "img", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.within: set[str] = set()
        self.titles: set[str] = set()
        self.cells: list[str] = []
        self.numbers = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "href" and value.startswith("#"):
                self.within.add(value[1:])
            if name == "title":
                self.titles.add(value)
            if name in ("src", "href", "xlink:href", "action") and not value.startswith(("#", "data:")):
                self.outside.append(value)
        if tag == "td":
            self.cells.append("")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data
        if self.open and self.open[-1] == "script":
            self.numbers += data
