"""LIBSVM's svm-train: C-SVC."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation, weigh_classes


def libsvm(text: str, counts: Counts) -> Translation:
    values = {"-s", "-t", "-d", "-g", "-r", "-c", "-m", "-e", "-h", "-b"}
    given = Given("LIBSVM", text, values=values, switches={"-q"}, class_weights=True)
    given.only("-s", "0", "only C-SVC")
    given.only("-b", "0", "probabilities come afterwards, see streamcut calibrate")
    kernel = {"0": "linear", "1": "poly", "2": "rbf"}.get(given.text("-t", "2"), "")
    if not kernel:
        given.refuse(f"-t {given.text('-t', '2')}", "kernels here are linear, polynomial and Gaussian")
    if kernel in ("poly", "rbf") and "-g" not in given.found:
        given.refuse("a default -g", "it is 1 / the number of features; give that")
    C, weights = given.number("-c", 1.0), given.class_weights()
    given.check()
    done = Translation({"--solver": "smo", "--kernel": kernel})
    if kernel != "linear":
        done.number("--gamma", given.number("-g", 0.0))
    if kernel == "poly":
        done.number("--degree", given.number("-d", 3.0))
        done.number("--coef0", given.number("-r", 0.0))
    weigh_classes(done, C, weights)
    if "-m" in given.found:
        done.options["--kernel-cache"] = f"{given.number('-m', 0.0):g}MiB"
    given.leave_out(done, "-e", "-h")
    return done
