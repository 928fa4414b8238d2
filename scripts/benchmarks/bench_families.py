"""Every family next to its best peer: processor seconds to the default stops, and to the objective that the peer reached.

    python scripts/benchmarks/bench_families.py [FAMILY …]        # C = 1: about ten minutes
    python scripts/benchmarks/bench_families.py --quick           # the smallest set of each
    python scripts/benchmarks/bench_families.py hinge --sets a9a,flights3m --C 1,10
    python scripts/benchmarks/bench_families.py --against REV     # ends with 1 if a family is worse by a fifth than REV

All in memory, one thread, medians of three (runs of more than five seconds: one). Both minimise the same objective. The best of
several peers is the one that takes least time, of those whose objectives are within 2 % of one another. "above" is how far an
objective is above our best lower bound, as a part of it; of tables and texts, above the better log loss of held-out rows. Sets
marked with * were used for no tuning. families.py says what is compared; data from STREAMCUT_DATA, default ../shared/data.

--against checks REV out next to this version, and trains with both by turns: the ratio of a family is the median of ours ÷ theirs
over its lines, to the default stop and to the peer's objective. Families that REV does not have are named, and pass.
"""

import argparse
import sys
import warnings
from typing import Any

from cases import median, serve, versions

NEAR = 1.02  # times the best of their objectives: further ones are not compared
WORSE = 1.2  # times as long is a fifth worse
AWAY = 0.002  # seconds: two medians that are nearer than that are the same
HEAD = "| family | set | C | best peer | its s | ours, s | ratio | above: its, ours | passes | to its objective |"
SUMS = "| family | lines | median ratio | worst | median to its objective | worst |"


def their_best(family: Any, name: str, C: float) -> dict[str, Any]:
    """The peer that a line is about."""
    runs = {peer: median(run, lambda solution: solution[0]) for peer, run in family.theirs(name, C).items()}
    objectives = {peer: family.objective(name, C, solution) for peer, (_, solution) in runs.items()}
    near = [peer for peer in runs if objectives[peer] <= NEAR * min(objectives.values())]
    peer = min(near, key=lambda other: runs[other][0])
    return {"peer": peer, "their seconds": runs[peer][0], "reached": objectives[peer]}


def ours(family: Any, name: str, C: float, peer: dict[str, Any]) -> dict[str, Any]:
    """What we take, to the default stop and to the objective of the peer."""
    seconds = lambda run: run["seconds"]  # noqa: E731
    plain = median(lambda: family.ours(name, C, {}), seconds)
    if not family.has_target():
        return {"plain": plain}
    stop = {"target": peer["reached"] * (1 + 1e-9), "tol": 1e-9, "tol_relative": None, "max_passes": 300}
    stop["max_time"] = max(30.0, 10.0 * peer["their seconds"])
    return {"plain": plain, "target": median(lambda: family.ours(name, C, stop), seconds)}


def answer(family: str, data: str, C: float, peer: dict[str, Any]) -> dict[str, Any]:
    """`ours` of a family by name."""
    from families import FAMILIES

    return ours(FAMILIES[family], data, C, peer)


def line(name: str, C: float, peer: dict[str, Any], runs: dict[str, Any]) -> dict[str, Any]:
    """One line of the table."""
    plain, target = runs["plain"], runs.get("target")
    bounds = [run["bound"] for run in (plain, target) if run is not None and run["bound"] is not None]
    best = max(bounds) if bounds else min(plain["primal"], peer["reached"])
    row = {"set": name, "C": C, "peer": peer["peer"], "their seconds": peer["their seconds"], "seconds": plain["seconds"]}
    row |= {"passes": plain["passes"], "above": plain["primal"] / best - 1, "theirs above": peer["reached"] / best - 1}
    row["ratio"] = plain["seconds"] / peer["their seconds"]
    if target is not None:
        row["to target"] = target["seconds"] / peer["their seconds"]
        row["reached"] = target["primal"] <= peer["reached"] * (1 + 1e-8)
    return row


def in_words(family: str, row: dict[str, Any]) -> str:
    to = f"{row['to target']:.2f}" + " (not reached)" * (not row["reached"]) if "to target" in row else ""
    return (
        f"| {family} | {row['set']} | {row['C']:g} | {row['peer']} | {row['their seconds']:.3f} "
        f"| {row['seconds']:.3f} | {row['ratio']:.2f} | {row['theirs above']:.1e}, {row['above']:.1e} "
        f"| {row['passes']} | {to} |"
    )


def sums(table: dict[str, list[dict[str, Any]]]) -> list[str]:
    """A line for each family."""
    import numpy as np

    lines = [SUMS, "|---|---|---|---|---|---|"]
    for name, rows in table.items():
        ratios, to = [row["ratio"] for row in rows], [row["to target"] for row in rows if "to target" in row]
        late = f"{np.median(to):.2f} | {max(to):.2f}" if to else " | "
        lines.append(f"| {name} | {len(rows)} | {np.median(ratios):.2f} | {max(ratios):.2f} | {late} |")
    return lines


def chosen(options: argparse.Namespace) -> list[tuple[str, str, float]]:
    """(family, set, C) of all lines; of those without C = 1 the least they have."""
    from families import FAMILIES

    if unknown := [name for name in options.families if name not in FAMILIES]:
        sys.exit(f"no family {', '.join(unknown)}; there are {', '.join(FAMILIES)}")
    lines = []
    for name in options.families or FAMILIES:
        family = FAMILIES[name]
        Cs = [C for C in family.Cs if options.C is None or C in options.C or name == "one-class"]
        for data in options.sets or family.sets[: 1 if options.quick else None]:
            lines += [(name, data, C) for C in (Cs[:1] if options.quick else Cs)]
    return lines


def compare(options: argparse.Namespace) -> None:
    """The table."""
    from families import FAMILIES

    table: dict[str, list[dict[str, Any]]] = {}
    print(f"{HEAD}\n{'|---' * 10}|", flush=True)
    for name, data, C in chosen(options):
        if name not in table:
            FAMILIES[name].ours(data, C, {})  # kernels are loaded
        peer = their_best(FAMILIES[name], data, C)
        table.setdefault(name, []).append(line(data, C, peer, ours(FAMILIES[name], data, C, peer)))
        print(in_words(name, table[name][-1]), flush=True)
    print("\n".join(["", *sums(table)]))


def worse(pairs: list[tuple[float, float]]) -> float:
    """The median of new ÷ old; differences within AWAY seconds are none."""
    ratios = sorted(1.0 if abs(new - old) <= AWAY else new / max(old, 1e-9) for new, old in pairs)
    return ratios[len(ratios) // 2]


def against(options: argparse.Namespace) -> int:
    """1 if a family is worse than in another version by a fifth."""
    from families import FAMILIES

    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with versions(__file__, options.against) as (here, there):
        warm: set[str] = set()
        for name, data, C in chosen(options):
            peer = their_best(FAMILIES[name], data, C)
            asked = {"family": name, "data": data, "C": C, "peer": peer}
            if name not in warm:
                warm.add(name)
                here.ask(**asked), there.ask(**asked)  # kernels are compiled
            new, old = here.ask(**asked), there.ask(**asked)
            if "error" in old or "error" in new:
                print(f"{name}, {data}, C = {C:g}: not compared: {old.get('error') or new.get('error')}", flush=True)
                continue
            texts = []
            for key, what in (("plain", "default stop"), ("target", "the peer's objective")):
                if key in new and key in old:
                    pairs.setdefault((name, what), []).append((new[key]["seconds"], old[key]["seconds"]))
                    texts.append(f"{what} {new[key]['seconds']:.3f} s, {old[key]['seconds']:.3f} there")
            print(f"{name}, {data}, C = {C:g}: {'; '.join(texts)}", flush=True)
    print(f"\n| family | to | lines | median of here ÷ {options.against} |\n|---|---|---|---|")
    failed = False
    for (name, what), times in pairs.items():
        ratio = worse(times)
        failed |= ratio > WORSE
        print(f"| {name} | {what} | {len(times)} | {ratio:.2f}{' WORSE' * (ratio > WORSE)} |")
    return int(failed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="default: all")
    parser.add_argument("--C", type=lambda text: [float(number) for number in text.split(",")], default=[1.0], help="default: 1")
    parser.add_argument("--quick", action="store_true", help="the first set of each family alone")
    parser.add_argument("--sets", type=lambda text: text.split(","), help="instead of those of the families")
    parser.add_argument("--against", metavar="REV", help="compare with this version instead of peers")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.serve:
        serve(answer)
        return 0
    if options.against:
        return against(options)
    compare(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
