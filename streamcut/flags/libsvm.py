"""LIBSVM's svm-train: C-SVC."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation, weigh_classes


def libsvm(text: str, counts: Counts) -> Translation:
    values = {"-s", "-t", "-d", "-g", "-r", "-c", "-m", "-e", "-h", "-b", "-v"}
    given = Given("LIBSVM", text, values, {"-q"}, class_weights=True)
    given.only("-s", "0", "only C-SVC")
    kernel = {"0": "linear", "1": "poly", "2": "rbf"}.get(given.text("-t", "2"), "")
    if not kernel:
        given.refuse(f"-t {given.text('-t', '2')}", "supported kernels are linear, polynomial and Gaussian")
    C, weights = given.number("-c", 1.0), given.class_weights()
    given.check()
    done = Translation({"--solver": "smo", "--kernel": kernel})
    if kernel != "linear":
        gamma = given.number("-g", 0.0) or 1.0 / counts.needed("features", "LIBSVM's -g defaults to 1 / features")
        done.number("--gamma", gamma)
    if kernel == "poly":
        done.number("--degree", given.number("-d", 3.0))
        done.number("--coef0", given.number("-r", 0.0))
    weigh_classes(done, C, weights)
    if "-m" in given.found:
        done.options["--kernel-cache"] = f"{given.number('-m', 0.0):g}MiB"
    if "-v" in given.found:
        done.across_folds(given.text("-v", ""))
    if given.text("-b", "0") != "0":
        done.notes.append("-b 1: probabilities are fitted afterwards, by `streamcut calibrate MODEL VALIDATION`")
    given.leave_out(done, "-e", "-h")
    done.in_files(given)
    return done
