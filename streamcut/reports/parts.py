"""Parts of a page as HTML: cards, tables, bars, figures. Everything that comes from a file or a name is escaped here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamcut import __version__
from streamcut.foundation.shown import html
from streamcut.models.files import plain
from streamcut.reports.drawing import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
:root { color-scheme: light dark; --line: #8883; --soft: #8881; --accent: #3d8bd4; --other: #d9822b; --quiet: #5f6670; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
@media (prefers-color-scheme: dark) { :root { --quiet: #a0a4aa; } body { background: #15171a; color: #e4e6e9; } }
h1 { font-size: 1.6rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; font-weight: 600; overflow-wrap: anywhere; } h3.next { margin-top: 1.5rem; }
p.quiet, figcaption, small { color: var(--quiet); } p.quiet { margin: .2rem 0 .6rem; overflow-wrap: anywhere; }
p.words { border-left: 4px solid var(--accent); padding: .4rem 1rem; background: var(--soft); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin-top: .8rem; } a { color: var(--accent); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .6rem; margin-top: 1.25rem; }
.card { background: var(--soft); border-radius: 6px; padding: .6rem .7rem; }
.card b { display: block; font-size: 1.3rem; line-height: 1.3; font-weight: 600; white-space: nowrap; }
.card span { color: var(--quiet); font-size: .85rem; display: block; line-height: 1.3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .22rem 1rem .22rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td, th { overflow-wrap: anywhere; } td.number, th.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
table.facts, table.facts tbody { display: block; }
table.facts tbody { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); gap: 0 2rem; }
table.facts tr { display: flex; justify-content: space-between; border-bottom: 1px solid var(--line); }
table.facts td { border: 0; } table.facts td + td { padding-right: 0; text-align: right; }
td.best { font-weight: 700; } table.confusion td { text-align: right; padding: .3rem .6rem; white-space: nowrap; }
table.confusion { border-spacing: 2px; border-collapse: separate; } table.confusion th { max-width: 11rem; }
table.confusion td, table.confusion th { border: 0; }
pre { background: var(--soft); padding: .8rem 1rem; border-radius: 4px; white-space: pre-wrap; overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1.5rem 2rem; }
.few { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 24rem), 1fr)); gap: 1.5rem 2rem; }
figure { margin: 0; break-inside: avoid; } figure svg { width: 100%; height: auto; }
.wide { overflow-x: auto; } * + .wide, * + .grid { margin-top: 1rem; }
.bars { display: grid; grid-template-columns: minmax(0, max-content) minmax(3rem, 1fr) max-content; gap: .25rem .9rem; }
.bars { align-items: center; font-variant-numeric: tabular-nums; max-width: 44rem; } .bars span { overflow-wrap: anywhere; }
.bars span + .bar + span { white-space: nowrap; text-align: right; }
.bar { background: var(--soft); height: .75rem; border-radius: 3px; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--accent); } .bar i.below { background: var(--other); }
@media print { nav { display: none; } body { max-width: none; font-size: 12px; } h2 { break-after: avoid; }
  .bar, .card, td { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


_NAMES = {  # for names of a certificate that say too little
    "c_bar": "C × sum of row weights",
    "gap_per_c_bar": "gap in mean loss",
    "unit": "unit of the tolerance",
    "raised": "rounding added to the objective",
    "tol": "tolerance in mean loss",
    "tol_relative": "tolerance, share of objective",
    "primal": "objective",
}


def page(title: str, line: str, head: str, sections: Mapping[str, str], numbers: Mapping[str, Any]) -> str:
    """A whole page: `sections` are HTML by heading, empty ones left out; `numbers` are embedded as JSON."""
    sections = {name: body for name, body in sections.items() if body}
    ids = {name: name.lower().replace(" ", "-") for name in sections}
    contents = "".join(f'<a href="#{ids[name]}">{html(name)}</a>' for name in sections)
    body = "\n".join(f'<section id="{ids[name]}"><h2>{html(name)}</h2>{text}</section>' for name, text in sections.items())
    carried = json.dumps(plain(dict(numbers)), allow_nan=False).replace("<", "\\u003c")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>\n<body>\n'
        f'<h1>{html(title)}</h1><p class="quiet">{html(line)} · streamcut {__version__}</p>{head}<nav>{contents}</nav>\n'
        f'{body}\n<script type="application/json" id="numbers">{carried}</script>\n</body></html>\n'
    )


def quiet(text: str) -> str:
    """A remark."""
    return f'<p class="quiet">{html(text)}</p>'


def cards(values: Mapping[str, Any]) -> str:
    """The most important figures, by name."""
    found = "".join(f'<div class="card"><b{_exact(value)}>{shown(value)}</b><span>{html(name)}</span></div>'
                    for name, value in values.items())  # fmt: skip
    return f'<div class="cards">{found}</div>' if found else ""


def table(rows: Mapping[str, Any]) -> str:
    """A table of our names and values."""
    lines = "".join(
        f"<tr><td>{html(_NAMES.get(name, name.replace('_', ' ')))}</td>{cell(value)}</tr>" for name, value in rows.items()
    )
    return f'<div class="wide"><table class="facts">{lines}</table></div>' if rows else ""


def records(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of records with the same fields; the first field names each."""
    if not rows:
        return ""
    names = list(rows[0])
    numbers = {name for name in names[1:] if any(not isinstance(plain(row[name]), str | bool) for row in rows)}
    head = "".join(f"<th{' class=number' * (name in numbers)}>{html(name.replace('_', ' '))}</th>" for name in names)
    body = "".join(f"<tr><td>{shown(row[names[0]])}</td>{''.join(cell(row[name]) for name in names[1:])}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def cell(value: Any, kind: str = "") -> str:
    """A table cell: numbers right-aligned, with all digits in the title."""
    number = isinstance(plain(value), int | float) and not isinstance(plain(value), bool)
    classes = " ".join(filter(None, ("number" if number or value is None else "", kind)))
    return f'<td class="{classes}"{_exact(value)}>{shown(value)}</td>' if classes else f"<td>{shown(value)}</td>"


def bars(values: Sequence[tuple[str, float, str]]) -> str:
    """(name, length, text) as bars from 0; those of negative length in another colour."""
    most = max((abs(length) for _, length, _ in values), default=0.0) or 1.0
    return '<div class="bars">' + "".join(
        f'<span>{html(name)}</span><div class="bar"><i{" class=below" if length < 0 else ""} '
        f'style="width:{100 * abs(length) / most:.1f}%"></i></div><span>{html(text)}</span>'
        for name, length, text in values
    ) + "</div>"  # fmt: skip


def figures(found: Mapping[str, tuple[str, Figure]]) -> str:
    """Plots by name, each with its caption."""
    drawn = "".join(
        f"<figure><figcaption>{html(caption)}</figcaption>{inline_svg(figure, name)}</figure>"
        for name, (caption, figure) in found.items()
    )
    return f'<div class="grid">{drawn}</div>' if drawn else ""


def confusion(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """Rows by true class (down) and predicted class (across), shaded by the share of the true class."""
    head = "".join(f"<th>{html(name)}</th>" for name in names)
    lines = ""
    for name, row in zip(names, matrix, strict=True):
        parts = [count / (sum(row) or 1.0) for count in row]
        shades = [f"color-mix(in srgb, var(--accent) {70 * part:.0f}%, transparent)" for part in parts]
        cells = "".join(
            f'<td style="background:{shade}" title="{100 * part:.4g} % of {html(name)}">{shown(count)}</td>'
            for shade, part, count in zip(shades, parts, row, strict=True)
        )
        lines += f"<tr><th>{html(name)}</th>{cells}</tr>"
    return f'<div class="wide"><table class="confusion"><tr><th>true \\ predicted</th>{head}</tr>{lines}</table></div>'


def shown(value: Any) -> str:
    """A readable value as HTML: four significant digits."""
    value = plain(value)
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return html(str(value))


def _exact(value: Any) -> str:
    """The title with all digits of a number shown with fewer."""
    value = plain(value)
    return f' title="{value!r}"' if isinstance(value, float) else ""
