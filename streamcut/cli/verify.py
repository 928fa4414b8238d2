"""streamcut verify"""

from __future__ import annotations

from dataclasses import asdict

import click

from streamcut.cli.output import note, print_json, print_table
from streamcut.cli.parameters import cache_options, json_option
from streamcut.errors import CorruptError, UsageError


@click.command()
@click.argument("model")
@click.argument("data", required=False)
@click.option("--bound", is_flag=True, help="Also compute a lower bound from the rows alone, in the same pass.")
@click.option("--force", is_flag=True, help="Go on with data other than those the model was trained on.")
@cache_options
@json_option
def command(model: str, data: str | None, bound: bool, force: bool, as_json: bool) -> None:
    """Recompute, in one pass over the store DATA, what the certificate of MODEL claims; without one, the objective alone.

    \b
    primal          objective of the model, summed over the rows: proves that the model reaches it
    witness bound   value of the cutting plane in the model: shows that the recorded bound belongs to it; that the
                    plane lies below the objective is training's word. Of smo and sampled cuts the value of the
                    dual, which the rows prove (of sequences: all but the transitions); 0 when its coefficients
                    don't belong to them
    own bound       (--bound) made from the rows alone: no weights reach less, whatever the model says;
                    loose, and next to nothing when features differ much in scale
    combined bound  (--bound) best mixture of both, as trustworthy as the witness

    Without DATA it is the store that training was given, under the same path.

    Exits with code 5 when record and recomputation differ by more than 1e-9 of the objective.

    \b
    Examples:
      streamcut verify m.npz
      streamcut verify m.npz train.zarr
      streamcut verify m.npz train.zarr --bound --json
    """
    from streamcut.models.files import load_model, plain
    from streamcut.verification import verify

    trained = load_model(model)
    data = data or trained.parameters.get("data")
    if data is None:
        raise UsageError(f"{model} was trained on arrays in memory; say what to verify it on: streamcut verify MODEL DATA")
    found = verify(trained, data, bound=bound, force=force)
    recorded = found.recorded
    report = {
        "rows": found.rows,
        "same_data": found.same_data,
        "primal": found.primal,
        "recorded_primal": None if recorded is None else recorded.primal,
        "primal_agrees": found.primal_agrees,
        "recorded_bound": None if recorded is None else recorded.lower_bound,
        "witness_bound": found.witness_bound,
        "bound_agrees": found.bound_agrees,
        "own_bound": found.own_bound,
        "combined_bound": found.combined_bound,
        "gap": None if recorded is None else found.primal - recorded.lower_bound,
        "mean_loss": found.mean_loss,
        "consistent": found.consistent,
    }
    if as_json:
        certificate = None if recorded is None else asdict(recorded)
        classes = [{"primal": each.primal, "primal_agrees": each.primal_agrees} for each in found.classes]
        print_json(plain({**report, "certificate": certificate, "classes": classes}))
    else:
        asked = {"own_bound", "combined_bound"}
        print_table({name: value for name, value in report.items() if bound or name not in asked})
    if not found.same_data:
        note("These are not the data that the model was trained on: its certificate says nothing about them.")
    elif not found.consistent:
        raise CorruptError(f"{model}: the certificate is not what this data gives")
    elif recorded is None:
        note("The model has no certificate: there is nothing to compare its objective with.")
