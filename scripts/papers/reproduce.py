#!/usr/bin/env python
"""All experiments of the five papers, and one page with every figure of theirs next to ours.

    python scripts/papers/reproduce.py --quick --out papers               # small samples of the data: about ten minutes
    python scripts/papers/reproduce.py --all --resume --out papers        # at the papers' sizes: days, in pieces
    python scripts/papers/reproduce.py --all --resume --budget 60 --only sbp,bsca --out papers
    python scripts/papers/reproduce.py --out papers                       # the page alone, of what is there

A piece is one experiment with a folder of its own, OUT/<paper>/<piece>, there whole or not at all: a run that was killed goes on
with --resume, and loses the piece that it was at. Without --resume, pieces that are there are an error.

With --keep PAGE, lines of an earlier papers.md stay for what has not been run again. Writes OUT/papers.md (the table: paper,
item, there, here, ratio, holds, note) and OUT/papers.html with all plots, which show ± a deviation over seeds. Where a data set
of a paper is not to be had, the nearest stands for it, as the note says; what nothing can be put next to is "not comparable".
Data from STREAMCUT_DATA, default ../shared/data.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import reproduce_facts
import reproduce_pieces
from reproduce_absent import absent
from reproduce_reasons import reason
from reproduce_tools import markdown

from streamcut.foundation.shown import html

HEADER = """# The figures of five papers, and ours

Made by `scripts/papers/reproduce.py`. "holds": limits and ranges exactly, exponents to within 0.15, errors and accuracies half a
point worse at most, "≈ x" to within a half or a tenth of x, other figures to within a tenth. Of theorems the line says by how
many times their bound is above what happened; one that is met with more than a hundred times to spare predicts nothing and is
called vacuous. What nothing here can be put next to has no answer, and the note says why. Times are processor time of a machine
that did other work. Processor hours are of pieces that tell theirs; lines "of an earlier version" are older than the pieces.
"""
YEARS = re.compile(r"\d{4}")
_STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; display: block; overflow-x: auto; }
td, th { padding: .22rem 1rem .22rem 0; border-bottom: 1px solid #8883; text-align: left; vertical-align: top; }
h3 { margin: 1.5rem 0 .4rem; } .quiet, figcaption { color: #777; } figure { margin: 1.5rem 0 0; }
</style>"""
PIECES = ("paper", "pieces there", "in full", "processor hours")
COLUMNS = ("paper", "item", "there", "here", "ratio", "holds", "note")
TITLES = {
    "svm-perf": "Joachims: Training linear SVMs in linear time (2006)",
    "ocas": "Franc & Sonnenburg: Optimized cutting plane algorithm (2008)",
    "sampled-cuts": "Yu & Joachims: Structural SVMs with kernels using sampled cuts (2008)",
    "bsca": "Qaadan, Schüler & Glasmachers: Dual SVM training on a budget (2019)",
    "sbp": "Cotter, Shalev-Shwartz & Srebro: Kernelized stochastic batch perceptron (2012)",
}
FACTS: dict[str, Callable[[Path], list[dict[str, Any]]]] = {  # of the others they stand in the results
    "sampled-cuts": reproduce_facts.sampled_cuts, "bsca": reproduce_facts.bsca, "sbp": reproduce_facts.sbp,
}  # fmt: skip


def facts_of(paper: str, out: Path) -> list[dict[str, Any]]:
    """All facts of a paper that its pieces hold."""
    if paper in FACTS:
        return FACTS[paper](out / paper)
    files = [path for path in sorted((out / paper).glob("*/*.json")) if path.name != reproduce_pieces.SPENT]
    return [fact for path in files for fact in json.loads(path.read_text())["facts"]]


def kept(page: Path, known: set[tuple[str, str]]) -> list[dict[str, Any]]:
    """Facts of an earlier page whose paper and item are not known; their figures are those of the page, to four digits."""
    found = []
    for line in page.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or len(cells) != len(COLUMNS) or not YEARS.search(cells[0]) or tuple(cells[:2]) in known:
            continue
        paper, item, there, here, _, holds, note = cells
        note = re.sub(r";? ?not so here: .*$", "", note)
        note = "; ".join(filter(None, [note, "of an earlier version" * ("earlier version" not in note)]))
        if holds:
            figures = [_value(there), _value(here)]
            found.append({"paper": paper, "item": item, "there": figures[0], "here": figures[1], "note": note})
    return found


def pieces_told(out: Path, page: Path | None) -> list[tuple[Any, ...]]:
    """What `out` holds of each paper, or what an earlier page says of papers that it has nothing of."""
    earlier = {}
    for line in [] if page is None else page.read_text("utf-8").splitlines():
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if len(cells) == len(PIECES):
            earlier[cells[0]] = cells
    return [each if each[1] else earlier.get(each[0], each) for each in reproduce_pieces.told(out)]


def table(facts: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """A line for each; where a figure does not hold, the note says why."""
    return [tuple(map(judged(each).get, COLUMNS)) for each in facts]


def judged(each: dict[str, Any]) -> dict[str, Any]:
    holds = verdict(each)
    notes = [each["note"], f"not so here: {reason(each['item'])}" if holds == "no" else ""]
    return {**each, "ratio": _ratio(each), "holds": holds, "note": "; ".join(filter(None, notes))}


def verdict(each: dict[str, Any]) -> str:
    """Whether what the paper says holds; "vacuous": it does because it says next to nothing.

    Limits and ranges hold exactly, "≈ x" to within a half or a tenth of x, other figures to within a tenth, exponents to within
    0.15; an accuracy or error is half a point worse at most.
    """
    there, here = each["there"], each["here"]
    if not isinstance(here, int | float) or math.isnan(here):
        return ""
    if not isinstance(there, str):
        if "test accuracy" in each["item"] or "test error" in each["item"]:
            worse = there - here if "test accuracy" in each["item"] else here - there
            return "yes" if worse <= 0.5 else "no"
        return "yes" if abs(here - there) <= (0.15 if "^" in each["item"] else 0.1 * abs(there)) else "no"
    sign, _, limit = there.replace("−", "-").partition(" ")
    if " to " in there:
        low, high = (float(each) for each in there.replace("−", "-").split(" to "))
        return "yes" if low <= here <= high else "no"
    if sign not in ("<", "≤", ">", "≈"):
        return ""
    x = float(limit)
    holds = {"<": here < x, "≤": here <= x, ">": here > x, "≈": abs(here - x) <= max(0.5, 0.1 * abs(x))}[sign]
    if holds and "vacuous" in each["note"]:
        return "vacuous"
    return "yes" if holds else "no"


def _ratio(each: dict[str, Any]) -> float | str:
    there, here = each["there"], each["here"]
    numbers = isinstance(there, int | float) and isinstance(here, int | float) and there
    return float(here / there) if numbers else ""


def page(out: Path, facts: list[dict[str, Any]]) -> str:
    """The table, then the plots and tables of each paper."""
    rows = [dict(zip(COLUMNS[1:], line[1:], strict=True)) for line in table(facts)]
    by_paper: dict[str, list[dict[str, Any]]] = {}
    for each, row in zip(facts, rows, strict=True):
        by_paper.setdefault(each["paper"], []).append(row)
    tables = [f"<h3 class=next>{html(paper)}</h3>{records(lines)}" for paper, lines in by_paper.items()]
    sections = {"Figures of the papers and ours": "".join(tables)}
    for paper, title in TITLES.items():
        folder, script = out / paper, reproduce_pieces.SCRIPTS[paper]
        plots = [_figure(path, folder) for path in sorted((*folder.rglob("*.svg"), *folder.rglob("*.png")))]
        texts = [
            f"<h3 class=next>{html(_name(path, folder))}</h3>{tables_of(path.read_text())}"
            for path in sorted(folder.rglob("*.md"))
        ]
        if plots or texts:
            sections[title] = quiet(script) + "".join(plots) + "".join(texts)
    body = "\n".join(f"<section><h2>{html(name)}</h2>{text}</section>" for name, text in sections.items())
    title = "Five papers, and what comes out here"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{_STYLE}</head>\n<body>\n'
        f"<h1>{title}</h1>\n{body}\n</body></html>\n"
    )


def quiet(text: str) -> str:
    """A remark."""
    return f'<p class="quiet">{html(text)}</p>'


def records(rows: list[dict[str, Any]]) -> str:
    """A table of records with the same fields; numbers have four significant digits."""
    if not rows:
        return ""
    head = "".join(f"<th>{html(name)}</th>" for name in rows[0])
    lines = "".join("<tr>" + "".join(f"<td>{_shown(value)}</td>" for value in row.values()) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{lines}</table>"


def _shown(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return html(str(value))


def _name(path: Path, folder: Path) -> str:
    """Of a file in the folder of a paper, or in one of its own for a run on some data: "table2", "mnist table2"."""
    return " ".join(path.relative_to(folder).with_suffix("").parts).replace("_", " ")


def _inline(path: Path, name: str) -> str:
    if path.suffix == ".png":
        content = base64.b64encode(path.read_bytes()).decode()
        return f'<img alt="{html(name)}" style="max-width:100%" src="data:image/png;base64,{content}">'
    svg = path.read_text()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    points = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1])
    svg = svg.replace("<svg ", f'<svg style="max-width:{1.4 * points:.0f}px" ', 1)
    return re.sub(r'(id="|url\(#|href="#)', rf"\1{name.replace(' ', '-')}-", svg)  # ids of one page


def _figure(path: Path, folder: Path) -> str:
    name = _name(path, folder)
    return f'<figure class="next"><figcaption>{html(name)}</figcaption>{_inline(path, f"{folder.name} {name}")}</figure>'


def tables_of(text: str) -> str:
    """Markdown of our scripts as HTML: tables, headings, paragraphs."""
    found, rows = [], []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([_value(each) for each in line.strip("|").split("|")])
            continue
        if rows:
            names, _, *lines = rows
            found.append(records([dict(zip(map(str, names), each, strict=True)) for each in lines]))
            rows = []
        if line.startswith("#"):
            found.append(f"<h3 class=next>{html(line.lstrip('# '))}</h3>")
        elif line:
            found.append(quiet(line))
    return "".join(found)


def _value(cell: str) -> float | str:
    """A cell of a table: a number where it is one."""
    try:
        return float(cell.strip().replace(",", ""))
    except ValueError:
        return cell.strip()


def counts(facts: list[dict[str, Any]]) -> str:
    """How many hold, do not, are vacuous, cannot be compared."""
    verdicts = [verdict(each) or "not comparable" for each in facts]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in ("yes", "no", "vacuous", "not comparable"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("papers"))
    parser.add_argument("--quick", action="store_true", help="run small samples first")
    parser.add_argument("--all", action="store_true", help="run everything first")
    parser.add_argument("--resume", action="store_true", help="keep the pieces that are there")
    parser.add_argument("--budget", type=float, metavar="MINUTES", help="begin no piece after that")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="TEXT,…", help="pieces whose names contain one")
    parser.add_argument("--keep", type=Path, metavar="PAGE", help="keep lines of this papers.md that are not run again")
    parser.add_argument("--list", action="store_true", help="say which pieces there are, and which of them are done")
    given = parser.parse_args()
    pieces = reproduce_pieces.quick() if given.quick else reproduce_pieces.whole()
    if given.only:
        pieces = [each for each in pieces if any(text in f"{each.paper} {each.name}" for text in given.only)]
        if not pieces:
            parser.error(f"no piece with {' or '.join(given.only)}; see --list")
    if given.list:
        print("\n".join(f"{'done' if each.done(given.out) else '    '} {each.paper} {each.name}" for each in pieces))
        return
    if given.quick or given.all:
        there = [each for each in pieces if each.done(given.out)]
        if there and not given.resume:
            parser.error(f"{given.out} holds {len(there)} pieces of {len(pieces)}: go on with --resume, or give another --out")
        left = reproduce_pieces.run_all(pieces, given.out, budget=given.budget)
        print(f"{len(pieces) - left} of {len(pieces)} pieces are done")
    facts = [each for paper in TITLES for each in facts_of(paper, given.out)]
    if not facts:
        sys.exit(f"nothing in {given.out}: run with --quick or --all")
    if given.keep:
        facts += kept(given.keep, {(each["paper"], each["item"]) for each in [*facts, *absent()]})
    facts = sorted([*facts, *absent()], key=lambda fact: (YEARS.search(fact["paper"])[0], fact["paper"], fact["item"]))
    reproduce_facts.draw(given.out)
    held = markdown(PIECES, pieces_told(given.out, given.keep))
    words = [HEADER, f"**Of {len(facts)} lines: {counts(facts)}.**\n", held, markdown(COLUMNS, table(facts))]
    (given.out / "papers.md").write_text("\n".join(words))
    (given.out / "papers.html").write_text(page(given.out, facts))
    print(counts(facts))
    print(f"{len(facts)} figures in {given.out / 'papers.md'}, with all plots in {given.out / 'papers.html'}")


if __name__ == "__main__":
    main()
