"""Figures 2, 3 of "The Kernelized Stochastic Batch Perceptron" (Cotter, Shalev-Shwartz & Srebro, ICML 2012), and what they leave.

curves   Figure 2: test error against kernel evaluations of SBP, Pegasos, SDCA, the Perceptron and SMO, without bias: a record of
         each run, a mean and a deviation over seeds. C = 1/(λn), σ² and, on all rows, ν are those of Table 2 of the paper; on
         fewer rows ν comes from SMO's optimum, as there. Kernel values are stored (reproduce_sbp_stored.py).
fourier  Figure 3: random Fourier features by their number of inner products, without the cost of training on them
batches  SBP on rows read from a store in every pass, in batches of 1, 8, 64 and 512: error at equal kernel evaluations, bytes
         read, time.
bias     SBP with an unregularised bias in parts of LIBSVM's time, as in the paper's section 5, and SMO.
smo      SMO against LIBSVM: dual objective and time at the same tolerance and cache.

Times are processor time of one thread. Kernel evaluations are those of whole columns: a row that a step changes costs as many as
there are training rows, for all methods but SMO, which computes what it needs. --quick takes the first 3,000 training rows.
Writes PART.json and PART.md, after each data set, and, with --plot (needs matplotlib), figure2.svg to --out.
Data from STREAMCUT_DATA, default ../shared/data.
"""

import argparse
import json
import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

import numpy as np
from reproduce_sbp_curves import METHODS, curves, curves_in_words, merged, plot
from reproduce_sbp_fourier import fourier, fourier_in_words
from reproduce_sbp_tables import (
    LIBSVM_SETS,
    against_libsvm,
    against_libsvm_in_words,
    batches,
    batches_in_words,
    with_bias,
    with_bias_in_words,
)
from reproduce_sbp_tools import TABLE_2

PARTS = {
    "curves": (curves, curves_in_words),
    "fourier": (fourier, fourier_in_words),
    "batches": (batches, batches_in_words),
    "bias": (with_bias, with_bias_in_words),
    "smo": (against_libsvm, against_libsvm_in_words),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--data", type=lambda text: text.split(","), metavar="NAME,…")
    parser.add_argument("--rows", type=int, help="only the first so many training rows")
    parser.add_argument("--test-rows", type=int, help="only the first so many test rows")
    parser.add_argument("--runs", type=int, default=10, help="with seeds from 0 on (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of `curves`: this one alone")
    parser.add_argument("--methods", type=lambda text: text.split(","), metavar="NAME,…", help="of `curves`; default: all")
    parser.add_argument("--stored", type=Path, metavar="DIR", help="where `curves` keeps kernel values (default: --out)")
    parser.add_argument("--epochs", type=float, default=10.0)
    parser.add_argument("--pairs", type=int, default=4096, help="of Fourier features, at most (default: %(default)s)")
    parser.add_argument("--epochs-streamed", type=float, default=1.0, help="kernel evaluations of `batches`, in m²")
    parser.add_argument("--seconds", type=float, help="of `bias`: so many for SBP, and no rivals")
    parser.add_argument("--out", type=Path, default=Path("sbp"))
    parser.add_argument("--plot", action="store_true")
    parser.add_argument("--quick", action="store_true", help="3,000 rows, 3 runs, 5 epochs")
    options = parser.parse_args()
    if unknown := [name for name in options.data or () if name not in TABLE_2 and name not in LIBSVM_SETS]:
        parser.error(f"no experiment on {', '.join(unknown)}; there are some on {', '.join({**TABLE_2, **LIBSVM_SETS})}")
    if options.quick:
        options.rows, options.test_rows, options.runs, options.epochs = options.rows or 3000, options.test_rows or 2000, 3, 5.0
        options.pairs = min(options.pairs, 256)
    options.methods = options.methods or [*METHODS, "smo"]
    if unknown := set(options.methods) - {*METHODS, "smo"}:
        parser.error(f"no method {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}, smo")
    options.seeds = range(options.runs) if options.seed is None else [options.seed]
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        compute, in_words = PARTS[part]
        result, text = {}, ""
        if part == "curves":
            records = []
            for record in compute(options):
                records.append(record)
                (options.out / "curves.json").write_text(json.dumps(records))
                last = np.ravel(record["error"])[-1]
                print(record["data"], record["method"], record["seed"], f"{100 * last:.2f} %", flush=True)
            result = merged(records)
            (options.out / "curves.md").write_text(text := in_words(result))
        else:
            for name, entry in compute(options):
                result[name] = entry
                text = in_words(result)
                (options.out / f"{part}.json").write_text(json.dumps(result, indent=1))
                (options.out / f"{part}.md").write_text(text)
        print(text)
        if part == "curves" and options.plot:
            plot(result, options.out / "figure2.svg")


if __name__ == "__main__":
    main()
