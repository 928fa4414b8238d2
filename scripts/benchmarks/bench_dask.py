"""Passes and seconds of training on a local Dask cluster next to as many threads: the same passes, and what sending sums costs.

The stores are made by scripts/tools/make_data.py, or converted. Seconds are by the clock, of the second of two trainings to the
default stop that take turns; kernels are loaded then.

    python scripts/benchmarks/bench_dask.py STORE [STORE …] [--losses hinge,logistic] [--C 1,10] [--row-cache 10%] [--workers 2]
"""

from __future__ import annotations

import argparse
import time
from itertools import product

from distributed import Client, LocalCluster

from streamcut import train


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", metavar="STORE")
    parser.add_argument("--losses", default="hinge")
    parser.add_argument("--C", default="1")
    parser.add_argument("--row-cache", default="10%")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    print("| data | loss | C | passes: threads, cluster | seconds | ratio |\n|---|---|---|---|---|---|")
    options = {"n_workers": args.workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as server, Client(server, set_as_default=False) as client:
        for store, loss, C in product(args.stores, args.losses.split(","), args.C.split(",")):
            seconds, passes = {}, {}
            for name, scheduler in (("threads", "threads"), ("cluster", client)) * 2:
                started = time.perf_counter()
                model = train(store, loss=loss, C=float(C), row_cache=args.row_cache, workers=args.workers, scheduler=scheduler)
                seconds[name], passes[name] = time.perf_counter() - started, model.history[-1]["passes"]
            shown = f"{passes['threads']}, {passes['cluster']} | {seconds['threads']:.1f}, {seconds['cluster']:.1f}"
            print(f"| {store} | {loss} | {C} | {shown} | {seconds['cluster'] / seconds['threads']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
