"""The formats of input: one record per format in `registry.py`, with all that other packages need to know of it.

How it is recognised, which options of `convert` apply to it, and the classes that read it, which are imported when they are
used, so the command line can list all formats at once. `finding.py` detects the format of files. A new format is a class in
streamcut.io.text, .tables or .sources, and a record.
"""
