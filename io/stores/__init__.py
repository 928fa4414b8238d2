"""Shards on disk: the format of FORMAT.md, its writers and readers, and what guards every byte."""
