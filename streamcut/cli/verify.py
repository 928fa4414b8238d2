"""streamcut verify"""

from __future__ import annotations

from dataclasses import asdict

import click

from streamcut.cli.output import note, print_json, print_table
from streamcut.cli.parameters import json_option
from streamcut.errors import CorruptError


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("--bound", is_flag=True, help="Also compute a lower bound from the rows alone, in the same pass.")
@click.option("--force", is_flag=True, help="Go on with data other than those the model was trained on.")
@json_option
def command(model: str, data: str, bound: bool, force: bool, as_json: bool) -> None:
    """Recompute, in one pass over the store DATA, what the certificate of MODEL claims.

    \b
    primal          objective of the model, summed over the rows: proves that the model reaches it
    witness bound   value of the cutting plane in the model: shows that the recorded bound belongs to it; that the
                    plane lies below the objective is training's word
    own bound       (--bound) made from the rows alone: no weights reach less, whatever the model says;
                    loose, and next to nothing when features differ much in scale
    combined bound  (--bound) best mixture of both, as trustworthy as the witness

    Exits with code 5 when record and recomputation differ by more than 1e-9 of the objective.

    \b
    Examples:
      streamcut verify m.npz train.zarr
      streamcut verify m.npz train.zarr --bound --json
    """
    from streamcut.models.files import plain
    from streamcut.verification import verify

    found = verify(model, data, bound=bound, force=force)
    recorded = found.recorded
    report = {
        "rows": found.rows,
        "same_data": found.same_data,
        "primal": found.primal,
        "recorded_primal": recorded.primal,
        "primal_agrees": found.primal_agrees,
        "recorded_bound": recorded.lower_bound,
        "witness_bound": found.witness_bound,
        "bound_agrees": found.bound_agrees,
        "own_bound": found.own_bound,
        "combined_bound": found.combined_bound,
        "gap": found.primal - recorded.lower_bound,
        "mean_loss": found.mean_loss,
        "consistent": found.consistent,
    }
    if as_json:
        print_json(plain({**report, "certificate": asdict(recorded)}))
    else:
        asked = {"own_bound", "combined_bound"}
        print_table({name: value for name, value in report.items() if bound or name not in asked})
    if not found.same_data:
        note("These are not the data that the model was trained on: its certificate says nothing about them.")
    elif not found.consistent:
        raise CorruptError(f"{model}: the certificate is not what this data gives")
