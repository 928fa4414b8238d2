"""Standard errors next to statsmodels' as the penalty goes away, with clusters, too; and what they cost.

    errors     the largest difference at C = 1, 1e3, 1e6; ends with code 1 if one at 1e6 is above 1e-6
    sizes      processor seconds of made data: 100, 1,000 and 4,000 features, from a store, within `CEILING`

Usage: python scripts/checks/check_standard_errors.py errors|sizes [--rows 1000000]
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import streamcut

CEILING = {100: "600MB", 1000: "1.2GB", 4000: "2.5GB"}  # by features, of sizes


def errors() -> int:
    """Against statsmodels: a Binomial GLM without a penalty, where C is large."""
    import statsmodels.api as sm

    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(3000, 6)), 4)
    clusters = rng.integers(0, 60, 3000)
    y = np.where(X @ rng.normal(size=6) + rng.normal(size=60)[clusters] + rng.logistic(size=3000) > 0.5, 1.0, -1.0)
    ones = sm.add_constant(X, prepend=False)
    theirs = sm.GLM(y > 0, ones, family=sm.families.Binomial()).fit(tol=1e-14)
    ways = {
        "model": (theirs.bse, {}),
        "robust": (sm.GLM(y > 0, ones, family=sm.families.Binomial()).fit(tol=1e-14, cov_type="HC0").bse, {"robust": True}),
        "clusters": (
            sm.Logit(y > 0, ones).fit(disp=0, tol=1e-14, method="newton", cov_type="cluster", cov_kwds={"groups": clusters}).bse,
            {"clusters": clusters},
        ),
    }
    print("| C | errors | largest relative difference | widest interval |")
    print("|---|---|---|---|")
    worst = 0.0
    for C in (1.0, 1e3, 1e6):
        model = streamcut.train((X, y), loss="logistic", C=C, intercept="free", tol=None, tol_relative=1e-9)
        for kind, (expected, how) in ways.items():
            found = streamcut.standard_errors(model, (X, y), **how)
            middle = 0.5 * (found.low + found.high)
            apart = float(np.abs(middle / expected - 1.0).max())
            worst = max(worst, apart) if C == 1e6 else 0.0
            print(f"| {C:g} | {kind} | {apart:.1e} | {float((found.high / found.low - 1.0).max()):.1e} |", flush=True)
    return int(worst > 1e-6)


def sizes(n: int) -> int:
    """Rows are read from a store, in no more memory than `CEILING`."""
    from streamcut.foundation.systems import peak_bytes

    print("| rows | features | ceiling | trained, s | standard errors, s | widest interval | peak of the process |")
    print("|---|---|---|---|---|---|---|")
    for D, ceiling in CEILING.items():
        rng = np.random.default_rng(D)
        with tempfile.TemporaryDirectory() as folder:
            text, truth = Path(folder) / "rows.svm", rng.normal(size=D)
            with text.open("w") as out:
                for start in range(0, n, 50_000):
                    rows = min(50_000, n - start)
                    X = sp.random_array((rows, D), density=10.0 / D, rng=rng, format="csr", dtype=np.float32)
                    y = np.where(X @ truth + rng.logistic(size=rows) > 0.0, 1, -1)
                    for i in range(rows):
                        at = slice(X.indptr[i], X.indptr[i + 1])
                        words = zip((X.indices[at] + 1).tolist(), X.data[at].tolist(), strict=True)
                        out.write(f"{y[i]} " + " ".join(f"{j}:{v:.6g}" for j, v in sorted(words)) + "\n")
            store = Path(folder) / "rows.zarr"
            streamcut.convert(text, store, n_features=D)
            text.unlink()
            del X, y
            began = time.process_time()
            options = {"loss": "logistic", "C": 1.0, "intercept": "free", "tol": None, "tol_relative": 1e-6, "memory": ceiling}
            model = streamcut.train(store, **options)
            between = time.process_time()
            found = streamcut.standard_errors(model, store, memory=ceiling)
            ended = time.process_time()
        wide, peak = float((found.high / found.low - 1.0).max()), peak_bytes() / 2**20
        times = f"{between - began:.1f} | {ended - between:.1f}"
        print(f"| {n:,} | {D:,} | {ceiling} | {times} | {wide:.1e} | {peak:.0f} MiB |", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("errors", "sizes"))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of sizes")
    given = parser.parse_args()
    return errors() if given.what == "errors" else sizes(given.rows)


if __name__ == "__main__":
    sys.exit(main())
