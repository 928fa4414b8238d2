"""`convert`: rows of any source into stores, ordered, split, resumable, in bounded memory.

`options.py` and `plan.py` hold the options and the memory that they take; `convert.py` runs a conversion, `work.py` reads and
writes its rows, `shuffle.py` orders them, `progress.py` reports. It imports the readers (streamcut.io.text, sources, tables)
and the writers (streamcut.io.stores). A new way to order or divide rows is a file here and its option in `options.py`.
"""
