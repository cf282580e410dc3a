"""What finds mentions and claims in a chunk: the contract, and reader, lexicon, learned and prompted, which fulfil it.

From outside: `contract`, `deferred`, `confidence`, `trust`, `embedded`, `suggestions`, `learned`, `learning`,
`prompted`, `reader`, `spacy_names`.
"""
