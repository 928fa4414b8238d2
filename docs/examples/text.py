"""Texts by topic: words become features, hashed, so that no vocabulary is kept."""

import numpy as np

import streamcut

TOPICS = {
    "gardening": "soil seed tomato prune compost bloom frost bulb hedge mulch",
    "cycling": "gear chain saddle climb brake tyre spoke pedal helmet descent",
    "baking": "dough yeast oven crust flour knead proof butter sugar glaze",
}
COMMON = "today I tried this again and my friend said that it was not so good after all"
random = np.random.default_rng(0)


def post(topic: str) -> str:
    """Some words about a topic among many that anybody writes."""
    return " ".join(random.permutation([*random.choice(COMMON.split(), 15), *random.choice(TOPICS[topic].split(), 3)]))


posts = [{"topic": topic, "text": post(topic)} for topic in random.choice(list(TOPICS), 900)]
model = streamcut.train(posts[:600], label="topic", loss="softmax", C=1.0, convert={"text": "text", "hash_bits": 12})
print(model.certificate.in_words())
print(f"accuracy on new posts {streamcut.evaluate(model, posts[600:]).accuracy:.3f}")
print(model.predict({"text": "the chain jumped and my brake was gone"}).tolist())
