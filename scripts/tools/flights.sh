#!/usr/bin/env bash
# Flights that will be late, from the table as it is: train on January to May 2001, score June. Needs flights-3m.parquet (3 million
# flights: date, delay, distance, origin, destination; the Vega data sets have it) in $STREAMCUT_DATA/flights3m or named as $1.
# Leaves everything in the folder flights/ (or $2).
set -euo pipefail
source=$(realpath "${1:-${STREAMCUT_DATA:-$(dirname "$0")/../../../shared/data}/flights3m/flights-3m.parquet}")
mkdir -p "${2:-flights}"
cd "${2:-flights}"

python - "$source" <<'END'
import sys
from datetime import datetime

import pyarrow.dataset as ds
import pyarrow.parquet as pq

flights, june = ds.dataset(sys.argv[1]), datetime(2001, 6, 1)
for name, when in {"before.parquet": ds.field("date") < june, "june.parquet": ds.field("date") >= june}.items():
    part = flights.scanner(filter=when)
    with pq.ParquetWriter(name, part.projected_schema) as out:
        for batch in part.to_batches():
            out.write_batch(batch)
END

set -x
rm -rf flights.zarr
streamcut convert before.parquet flights.zarr --label 'delay>15' --time date:hour,weekday --numeric distance:bin20 \
    --cross 'origin*destination' --memory 1GB
streamcut train flights.zarr --loss logistic --C 0.1 -o m.npz --memory 1GB --force
streamcut evaluate m.npz june.parquet
streamcut predict m.npz june.parquet --keep date,origin --answer probabilities -o late.parquet --force
streamcut explain m.npz --top 8
