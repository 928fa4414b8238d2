"""Vowpal Wabbit's linear learners."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation, several_classes, take_loss

_LOSSES = {"hinge": ("binary", "hinge"), "logistic": ("binary", "logistic"), "squared": ("regression", "squared"),
           "quantile": ("regression", "quantile")}  # fmt: skip
_FACTOR = {"squared": 2.0}  # its loss is r², ours ½r²


_WHOLE = ("--bfgs", "--no_bias_regularization")  # only one that sees all rows at once knows the second


def vw(text: str, counts: Counts) -> Translation:
    left_out = {"-b", "--bit_precision", "-l", "--learning_rate", "--power_t", "--initial_t", "--passes", "--cache_file"}
    left_out |= {"-d", "--data", "-f", "--final_regressor", "--readable_model", "--random_seed", "--mem", "--termination"}
    idle = {"-c", "--cache", "-k", "--kill_cache", "--holdout_off", "--binary", "--sgd", "--predict_only_model", "--save_resume"}
    values = {"--loss_function", "--quantile_tau", "--l1", "--l2", "--oaa", *left_out}
    given = Given("vw", text, values=values, switches={"--noconstant", "--quiet", *_WHOLE, *idle})
    loss = given.text("--loss_function", "squared")
    if loss not in _LOSSES:
        given.refuse(f"--loss_function {loss}", f"losses here are {', '.join(_LOSSES)}")
    if "--quantile_tau" in given.found and loss != "quantile":
        given.refuse("--quantile_tau", "only the quantile loss has it")
    lam = given.number("--l2", 0.0)
    if lam <= 0:
        given.refuse(f"--l2 {lam:g}", "without L2 regularisation there is nothing to certify")
    sparse = given.number("--l1", 0.0)
    if sparse < 0:
        given.refuse(f"--l1 {sparse:g}", "it must be 0 or above")
    several = "--oaa" in given.found
    if several and _LOSSES.get(loss, ("", ""))[0] != "binary":
        given.refuse(f"--oaa with --loss_function {loss}", "of classes losses here are hinge and logistic")
    given.check()
    task, ours = _LOSSES[loss]
    done = Translation({"--task": task} if task != "binary" else {})
    if several:
        several_classes(done, ours, int(given.number("--oaa", 0.0)))
    else:
        take_loss(done, ours, task)
    if sparse:
        done.number("--l1", sparse / lam)
    if loss == "quantile":
        done.number("--quantile", given.number("--quantile_tau", 0.5))
    whole = "--bfgs" in given.found
    done.number("--C", _FACTOR.get(loss, 1.0) / (lam if whole else lam * counts.needed("rows", "vw's --l2 is per row")))
    if whole and "--no_bias_regularization" in given.found and "--noconstant" not in given.found:
        done.options["--intercept"] = "free"
    else:
        done.number("--bias", 0.0 if "--noconstant" in given.found else 1.0)
    if "--quiet" in given.found:
        done.options["--quiet"] = ""
    dropped = [name for name in given.found if name in left_out | idle]
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how vw goes about it, not what it solves; left out")
    if not whole:
        done.notes.append("vw takes online steps towards this optimum; here it is solved to a certificate")
    return done
