"""A sentence that begins with another thing of the same kind speaks of that one."""

import pytest

from sameas.extraction.extractors.reader.extractor import _has_own_subject
from sameas.extraction.graph.model import Mention
from sameas.extraction.text.chunking import Chunk

TYPES = {"Acme": "Firm", "Bolt": "Firm", "Anna": "Person", "Otto": "Person"}


@pytest.mark.parametrize(
    ("text", "subject", "target", "expected"),
    [
        ("The chief of Acme is Otto. Bolt is led by Anna.", "Acme", "Anna", True),
        ("Acme was founded long ago. It is led by Anna.", "Acme", "Anna", False),
        ("Acme was founded long ago. Otto works for Anna.", "Acme", "Anna", False),
        ("Acme grew. In that year Bolt was bought and Anna came.", "Acme", "Anna", False),
        ("Acme is led by Anna.", "Acme", "Anna", False),
    ],
)
def test_the_subject_of_the_objects_own_sentence_decides(text, subject, target, expected):
    seen = sorted(
        (
            Mention(at, at + len(name), name, types=(kind,))
            for name, kind in TYPES.items()
            if (at := text.find(name)) >= 0
        ),
        key=lambda mention: mention.start,
    )
    by_name = {mention.text: mention for mention in seen}
    chunk = Chunk(0, 0, len(text), text)
    assert _has_own_subject(chunk, by_name[subject], by_name[target], seen) is expected
