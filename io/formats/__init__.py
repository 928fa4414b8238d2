"""The formats of input: one record (`format.py`) per format with all that other packages need to know of it.

How it is recognised, which options of `convert` apply to it, how its rows are read and in how much memory, and whether
`predict` reads it directly. `registry.py` lists the records, `finding.py` detects the format of files. Readers are in
streamcut.io.text, .tables and .sources; they are imported when a record's functions run, so the command line can list all
formats at once. A new format is a file here, or a record in one, and its line in `registry.py`.
"""
