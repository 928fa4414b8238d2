"""The dictionary of keys: numbers, limits, memory."""

import tracemalloc

import numpy as np
import pytest

from streamcut.io.recipe.recipe import Recipe
from streamcut.io.tables.dictionary import KeyCounter, KeyDictionary, NoRoomForKeysError, needed_bytes
from streamcut.io.tables.words import listed

NO_BYTES, NO_ROWS = np.empty(0, np.uint8), np.empty(0, np.int64)


def learned(dictionary, names, first_row=0):
    """The features of `names`, one a row, in a batch of their own."""
    out = np.empty(len(names), np.int32)
    dictionary.learn(0, listed(names), NO_BYTES, NO_BYTES, NO_ROWS, first_row, out)
    dictionary.number()
    dictionary.renumber(out)
    return out


@pytest.mark.parametrize("spelling", ["key{:010d}", "{:04d}", "ключ{:09d}", "x" * 60 + "{:08d}"])
def test_it_grows_without_a_copy_and_in_the_memory_that_is_counted(spelling):
    names = [spelling.format(number * 7919 % 300_007) for number in range(200_000)]
    batches = [names[start : start + 20_000] for start in range(0, len(names), 20_000)]
    dictionary = KeyDictionary(most=1 << 20)
    learned(dictionary, names[:10])  # compiles
    text = sum(len(name.encode()) for name in set(names))
    tracemalloc.start()
    found = np.concatenate([learned(dictionary, batch, 20_000 * number) for number, batch in enumerate(batches)])
    _, growing = tracemalloc.get_traced_memory()
    kept = dictionary.names()
    Recipe("vw", names=kept).to_json()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}
    assert found.tolist() == [order[name] for name in names]
    assert kept == tuple(order)
    batch = 20_000 * 200  # the words and numbers of one
    assert growing < 48 * len(order) + 1.3 * text + batch
    assert peak < needed_bytes(len(order), text, plain=spelling.isascii()) + batch


def test_names_of_number_columns_need_no_room_for_keys():
    names = [f"column{i}" for i in range(5000)]
    dictionary = KeyDictionary(names, most=6000, room=1000)
    assert dictionary.names() == tuple(names)
    with pytest.raises(NoRoomForKeysError):
        learned(dictionary, ["another"])


def test_keys_are_counted_in_little_memory():
    names = [f"key{i % 200_000}" for i in range(400_000)]
    words, out = listed(names), np.empty(len(names), np.int32)
    counter = KeyCounter()
    counter.learn(0, listed(names[:1]), NO_BYTES, NO_BYTES, NO_ROWS, 0, out[:1])  # compiles
    tracemalloc.start()
    counter.learn(0, words, NO_BYTES, NO_BYTES, NO_ROWS, 0, out)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    keys, text = counter.keys_and_text()
    assert 200_000 <= keys <= 205_000
    assert 1_680_000 <= text <= 1_780_000
    assert peak < 5_000_000
