"""`streamcut check`: the files of a store against their checksums."""

from __future__ import annotations

from dataclasses import asdict

import click

from streamcut.cli.help import Command
from streamcut.cli.output import counted, note, print_json
from streamcut.cli.parameters import json_option
from streamcut.errors import CorruptError
from streamcut.foundation.shown import visible
from streamcut.foundation.units import format_bytes


@click.command(cls=Command)
@click.argument("path")
@click.option("--read-data", is_flag=True, help="Read every byte, not only names, lengths and metadata.")
@json_option
def command(path: str, read_data: bool, as_json: bool) -> None:
    """Check the store PATH, and list every problem. Exit code 5 when there are any.

    \b
    Example:
      streamcut check train.zarr --read-data
    """
    from streamcut.io.stores.verify import verify_store

    report = verify_store(path, read_data=read_data)
    if as_json:
        print_json({**asdict(report), "sound": report.sound})
    else:
        for problem in report.problems:
            click.echo(visible(problem))
        for name in report.unexpected:
            note(f"{path}/{name}: not part of the store, but harmless")
    if not report.sound:
        raise CorruptError(f"{path}: {counted(len(report.problems), 'problem')} found; convert the data again")
    if not as_json:
        how = "every byte read" if read_data else "names, lengths and metadata; --read-data reads every byte"
        parts = f"{counted(report.shards, 'shard')}, {counted(report.files, 'file')}, {format_bytes(report.bytes)}"
        note(f"{path}: sound: {parts} ({how})")
