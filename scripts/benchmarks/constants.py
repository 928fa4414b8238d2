"""What each constant of the default solver earns: passes and processor time with a quarter and with four times of it.

Everything in memory, one thread, one lane, to the default stop, on sets and losses of several kinds; a run that does not end in
--max-passes counts that many. Constants inside of compiled code are not among them: they cannot be changed from outside.
Usage: python scripts/benchmarks/constants.py [NAME …] [--sets a,b] [--max-passes N]
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import bench_cases  # of this folder

SETS = "a9a,reuters_moneyfx,letter:3,usps:3,spambase,ijcnn1,dna:2,ord_computer"
CASES = list(product(("hinge", "epsilon-insensitive", "logistic"), (1.0, 10.0), ("0", "auto")))
FACTORS = (0.25, 4.0)
# module: its constants; those of one text change together
CONSTANTS = {
    "streamcut.solvers.acceleration": ("_WINDOW _LEAST",),
    "streamcut.solvers.bundle_dca": ("ENOUGH",),
    "streamcut.solvers.state": ("CAREFUL", "QP_SHARE"),
    "streamcut.solvers.best": ("RISK",),
    "streamcut.solvers.ocas": ("MU",),
    "streamcut.bundle.bundle": ("UNUSED_ITERATIONS",),
    "streamcut.bundle.line_search": ("_LEFT",),
    "streamcut.oracles.decomposable": ("_FIRST",),
    "streamcut.oracles.dual.ascent": ("_CLOSE",),
    "streamcut.oracles.dual.interior": ("_LEAST",),
    "streamcut.oracles.dual.worth": ("_PASS", "LESS", "LITTLE"),
    "streamcut.oracles.dual.random_order": ("_MOST_ROWS",),
    "streamcut.execution.row_cache": ("_NEAR", "_GROUP_NNZ", "_GROUPS"),
    "streamcut.jobs.binary": ("_CACHED", "_FEW", "_OF_MANY"),
    "streamcut.jobs.linear": ("_BUNDLE_NUMBERS",),
    "streamcut.strategy": ("_PRODUCTS", "_DENSE", "_TOGETHER", "_SOLVED"),
}


@contextmanager
def changed(module: str, name: str, factor: float) -> Iterator[None]:
    """The constants times `factor`, wherever they were imported to; whole numbers stay whole."""
    before = []
    for own in name.split():
        value = getattr(sys.modules[module], own)
        new = max(1, round(value * factor)) if isinstance(value, int) else value * factor
        source = vars(sys.modules[module])
        for key, each in list(sys.modules.items()):
            if key.startswith("streamcut") and own in vars(each) and (vars(each) is source or not own.startswith("_")):
                before.append((each, own, vars(each)[own]))
                setattr(each, own, new)
    try:
        yield
    finally:
        for each, own, value in before:
            setattr(each, own, value)


def measure(sets: dict, most: int) -> dict[str, tuple[int, float, bool]]:
    """(passes, seconds, converged) of every case."""
    from streamcut.training import train

    found = {}
    for (problem, data), (loss, C, cache) in product(sets.items(), CASES):
        numbers = loss in bench_cases.NUMBERS
        if (problem.partition(":")[0] in bench_cases.OF_NUMBERS) > numbers:
            continue
        task = "regression" if numbers else "binary"
        started = time.thread_time()
        model = train(data, task=task, loss=loss, C=C, row_cache=cache, lanes=1, scheduler="sync", max_passes=most)
        found[f"{problem} {loss} {C:g} {cache}"] = (
            model.history[-1]["passes"],
            time.thread_time() - started,
            model.certificate.converged,
        )
    return found


def line(before: dict, after: dict) -> str:
    passes, seconds = (sum(each[i] for each in after.values()) / sum(each[i] for each in before.values()) for i in (0, 1))
    left = sum(not each[2] for each in after.values())
    worst = max(before, key=lambda case: after[case][0] / before[case][0])
    best = min(before, key=lambda case: after[case][0] / before[case][0])
    ends = f"{worst}: {before[worst][0]} -> {after[worst][0]}; {best}: {before[best][0]} -> {after[best][0]}"
    return f"{passes:7.2f} {seconds:7.2f} {left:4}   {ends}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--max-passes", type=int, default=100)
    options = parser.parse_args()
    from streamcut.io.memory import MemoryDataset

    sets = {name: MemoryDataset(*bench_cases.load(name)) for name in options.sets.split(",")}
    measure(sets, options.max_passes)  # loads kernels
    before = measure(sets, options.max_passes)
    print(f"{len(before)} cases, {sum(each[0] for each in before.values())} passes, ", end="")
    print(f"{sum(each[1] for each in before.values()):.1f} s, {sum(not each[2] for each in before.values())} not ended")
    print(f"{'constant':28} {'value':>10} {'times':>6} {'passes':>7} {'time':>7} {'left':>4}   worst; best, passes", flush=True)
    for module, names in CONSTANTS.items():
        for name in names:
            if options.names and not set(name.split()) & set(options.names):
                continue
            value = getattr(sys.modules[module], name.split()[0])
            for factor in FACTORS:
                with changed(module, name, factor):
                    after = measure(sets, options.max_passes)
                short = f"{module.rpartition('.')[2]}.{name}"
                print(f"{short:28} {value:10g} {factor:6g} {line(before, after)}", flush=True)


if __name__ == "__main__":
    main()
