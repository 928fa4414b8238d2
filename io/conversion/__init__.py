"""`convert`: rows of any source into stores, ordered, split, resumable, in bounded memory.

`options.py` holds the options, `plan.py` what is known before the inputs are opened, `convert.py` reads and writes rows,
`shuffle.py` orders them, `create.py` stores blocks that a program makes. It imports the readers (streamcut.io.text, sources,
tables) and the writers (streamcut.io.stores). A new way to order or divide rows is a file here and its option.
"""
