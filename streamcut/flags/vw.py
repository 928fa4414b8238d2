"""Vowpal Wabbit's linear learners."""

from __future__ import annotations

from streamcut.flags.translation import Counts, Given, Translation, several_classes, take_loss

_LOSSES = {"hinge": ("binary", "hinge"), "logistic": ("binary", "logistic"), "squared": ("regression", "squared"),
           "quantile": ("regression", "quantile")}  # fmt: skip
_FACTOR = {"squared": 2.0}  # its loss is r², ours ½r²


_SHORT = {"-b": "--bit_precision", "-l": "--learning_rate", "-d": "--data", "-f": "--final_regressor",
          "-i": "--initial_regressor",
          "-p": "--predictions", "-c": "--cache", "-k": "--kill_cache", "-P": "--progress", "-q": "--quadratic"}  # fmt: skip
_IDLE = {"--learning_rate", "--power_t", "--initial_t", "--passes", "--cache_file", "--random_seed", "--readable_model",
         "--holdout_period",
         "--holdout_after", "--early_terminate", "--progress", "--mem", "--termination", "--decay_learning_rate"}  # fmt: skip
_IDLE_SWITCHES = {"--cache", "--kill_cache", "--holdout_off", "--binary", "--sgd", "--adaptive", "--normalized",
                  "--invariant", "--no_stdin", "--save_resume", "--ftrl", "--predict_only_model"}  # fmt: skip
_ELSEWHERE = {  # the job of other commands
    "--quadratic": "crossed features are made by `streamcut convert --cross`, from a table",
    "--cubic": "crossed features are made by `streamcut convert --cross`, from a table",
    "--interactions": "crossed features are made by `streamcut convert --cross`, from a table",
    "--ngram": "n-grams are made by `streamcut convert --text COLUMN --ngrams 1,2`, from a table",
    "--predictions": "`streamcut predict` prints them",
    "--testonly": "`streamcut predict` and `streamcut evaluate` take a model and data",
    "-t": "`streamcut predict` and `streamcut evaluate` take a model and data",
    "--link": "`streamcut predict --probabilities` prints them",
    "--invert_hash": "`streamcut weights` prints weights by name, for features that are not hashed",
}
_WHOLE = ("--bfgs", "--no_bias_regularization")  # the second works only with the first, which sees all rows at once
_CHOSEN = "0.01,0.1,1,10,100"


def vw(text: str, counts: Counts) -> Translation:
    files = {"--data", "--final_regressor", "--initial_regressor", "--bit_precision"}
    valued = {name for name in _ELSEWHERE if name not in ("--testonly", "-t")}
    values = {"--loss_function", "--quantile_tau", "--l1", "--l2", "--oaa", *files, *_IDLE, *valued}
    switches = {"--noconstant", "--quiet", "--testonly", "-t", *_WHOLE, *_IDLE_SWITCHES}
    short = {name for name, long in _SHORT.items() if long in values}
    given = Given("vw", text, values | short, switches | (_SHORT.keys() - short), files=1)
    given.found = {_SHORT.get(name, name): value for name, value in given.found.items()}
    for name in [name for name in _ELSEWHERE if name in given.found]:
        given.refuse(name, _ELSEWHERE[name])
    loss = given.text("--loss_function", "squared")
    if loss not in _LOSSES:
        given.refuse(f"--loss_function {loss}", f"supported losses are {', '.join(_LOSSES)}")
    if "--quantile_tau" in given.found and loss != "quantile":
        given.refuse("--quantile_tau", "only the quantile loss has it")
    lam, sparse = given.number("--l2", 0.0), given.number("--l1", 0.0)
    if min(lam, sparse) < 0:
        given.refuse(f"--l2 {lam:g} --l1 {sparse:g}", "they must be 0 or above")
    if sparse and not lam:
        given.refuse(f"--l1 {sparse:g} without --l2", "‖w‖₁ comes with ½‖w‖² here; give a small --l2")
    several = "--oaa" in given.found
    if several and _LOSSES.get(loss, ("", ""))[0] != "binary":
        given.refuse(f"--oaa with --loss_function {loss}", "supported losses for classes are hinge and logistic")
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
    if lam:
        done.number("--C", _FACTOR.get(loss, 1.0) / (lam if whole else lam * counts.needed("rows", "vw's --l2 is per row")))
    if whole and "--no_bias_regularization" in given.found and "--noconstant" not in given.found:
        done.options["--intercept"] = "free"
    else:
        done.number("--bias", 0.0 if "--noconstant" in given.found else 1.0)
    if not lam:
        done.across_folds("5", _CHOSEN)
        done.notes.append("without --l2 vw is regularised only by stopping after its passes; here C is chosen on held-out rows")
    if "--quiet" in given.found:
        done.options["--quiet"] = ""
    if "--initial_regressor" in given.found:
        done.notes.append("--initial_regressor: --warm-start takes our models, not those of vw")
    done.in_files(given)
    done.data, done.model = given.found.get("--data", done.data), given.found.get("--final_regressor")
    if (bits := given.text("--bit_precision", "")) and done.data is not None:
        done.options["--hash-bits"] = bits
    elif bits:
        done.notes.append(f"-b: features are hashed by `streamcut convert --hash-bits {bits}`")
    dropped = [name for name in given.found if name in _IDLE | _IDLE_SWITCHES]
    if dropped:
        done.notes.append(f"{', '.join(dropped)}: how vw solves the problem, not what it solves; left out")
    if not whole:
        done.notes.append("vw takes online steps towards this optimum; here it is solved to a certificate")
    return done
