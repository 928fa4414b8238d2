"""The storage layer: parse, write, read and verify sparse rows in shards. The on-disk format is in FORMAT.md."""
