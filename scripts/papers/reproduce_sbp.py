"""Figures 2, 3 of "The Kernelized Stochastic Batch Perceptron" (Cotter, Shalev-Shwartz & Srebro, ICML 2012), and what they leave.

curves   test error against kernel evaluations of SBP, Pegasos, SDCA, the Perceptron and SMO, without bias: mean and standard
         deviation of the test error in percent over runs with different seeds. C = 1/(λn) and σ² are those of Table 2 of the
         paper; ν comes from SMO's optimum, as there.
fourier  Figure 3: SBP against random Fourier features at equal numbers of inner products, without the cost of training on these
batches  SBP on rows read from a store in every pass, in batches of 1, 8, 64 and 512: error at equal kernel evaluations, bytes
         read, time.
bias     SBP with an unregularised bias in parts of LIBSVM's time, as in the paper's section 5, and SMO.
smo      SMO against LIBSVM: dual objective and time at the same tolerance and cache.

Times are processor time of one thread. Kernel evaluations are those of whole columns: a row that a step changes costs as many as
there are training rows, for all methods but SMO, which computes what it needs. --quick takes the first 3,000 training rows.
Writes PART.json and PART.md, after each data set, and, with --plot (needs matplotlib), figure2.svg and figure3.svg to --out.
Data from STREAMCUT_DATA, default ../shared/data.
"""

import argparse
import json
import os
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # peers, too: LIBSVM spins on OpenMP threads

from reproduce_sbp_curves import curves, curves_in_words, plot
from reproduce_sbp_fourier import fourier, fourier_in_words, plot_fourier
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
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--epochs", type=float, default=10.0)
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
    options.out.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        compute, in_words = PARTS[part]
        result, text = {}, ""
        for name, entry in compute(options):
            result[name] = entry
            text = in_words(result)
            (options.out / f"{part}.json").write_text(json.dumps(result, indent=1))
            (options.out / f"{part}.md").write_text(text)
        print(text)
        if part == "curves" and options.plot:
            plot(result, options.out / "figure2.svg")
        if part == "fourier" and options.plot:
            plot_fourier(result, options.out / "figure3.svg")


if __name__ == "__main__":
    main()
