"""English words that say little about the topic of a text: articles, pronouns, prepositions, conjunctions, auxiliaries."""

from __future__ import annotations

# At least two letters, like the words of texts; includes the pieces of contractions, which are split at the apostrophe.
_WORDS = """
about above across after afterwards again against all almost alone along already also although always am among an and another
any anybody anyhow anyone anything anyway anywhere are aren around as at away be became because become becomes been before
beforehand behind being below beside besides between beyond both but by can cannot could couldn did didn do does doesn doing
don done down during each either else elsewhere enough etc even ever every everybody everyone everything everywhere except few
for former from further get gets got had hadn has hasn have haven having he hence her here hers herself him himself his how
however if in indeed instead into is isn it its itself just least less ll many may maybe me meanwhile might mine more moreover
most mostly much must mustn my myself neither never nevertheless no nobody none nor not nothing now nowhere of off often on
once one only onto or other others otherwise ought our ours ourselves out over own per perhaps quite rather re really same
shall shan she should shouldn since so some somebody somehow someone something sometimes somewhere still such than that the
their theirs them themselves then there thereby therefore these they this those though through throughout thus to together too
toward towards under until up upon us ve very via was wasn we well were weren what whatever when whenever where whereas
whether which while who whoever whole whom whose why will with within without won would wouldn yet you your yours yourself
yourselves
"""
ENGLISH = frozenset(_WORDS.split())
