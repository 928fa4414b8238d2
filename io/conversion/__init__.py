"""`convert`: rows of any source into stores, ordered, split, resumable, in bounded memory."""
