"""Replies are checked again here, and what is wrong is said so that it can be sent back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameas.extraction.extractors.prompted.replies import (
    Agreed,
    BadReplyError,
    EntityReply,
    GroundingReply,
    JointReply,
    NamedEntity,
    RelationReply,
    SampledItem,
    agree,
    read_reply,
    schema_of,
)

KINDS = (EntityReply, RelationReply, JointReply, GroundingReply)


def test_a_good_reply_is_read() -> None:
    reply = read_reply('{"entities":[{"name":"Acme","type":3}],"values":["1999"]}', EntityReply)
    assert reply == EntityReply((NamedEntity("Acme", 3),), ("1999",))


@pytest.mark.parametrize("text", ['```json\n{"relations":[]}\n```', ' {"relations":[]} \n', '```\n{"relations":[]}```'])
def test_marks_around_the_json_do_no_harm(text: str) -> None:
    assert read_reply(text, RelationReply) == RelationReply(())


@pytest.mark.parametrize(
    "text",
    [
        'Sure! Here it is: {"relations":[]}',
        'Here you are:\n```json\n{"relations":[]}\n```\nLet me know if you need more.',
        '<think>The set {a, b} is {"odd": 1}.</think>{"relations":[]}',
        '{"relations":[]}\n\nThat is: {"relations":[]}',
    ],
)
def test_words_around_a_good_reply_do_no_harm(text: str) -> None:
    assert read_reply(text, RelationReply) == RelationReply(())


@pytest.mark.parametrize(
    "text",
    [
        '{"entities":[{"name":"Ann Lee","type":2},],"values":[],}',
        'The form is {"entities":[{"name":"...","type":1}],"values":["..."]}. So: {"entities":[{"name":"Ann Lee","type":2}]}',
        '{"result":{"entities":[{"name":"Ann Lee","type":2}],"values":[]}}',
        'Here:\n```json\n{"entities":[{"name":"Ann Lee","type":2}]}\n```\nWhat {this} says is clear.',
    ],
    ids=["comma", "form", "inside of another", "fence among words"],
)
def test_harmless_faults_of_a_reply_are_not_paid_for_again(text: str) -> None:
    assert read_reply(text, EntityReply) == EntityReply((NamedEntity("Ann Lee", 2),))


def test_a_line_break_inside_of_a_name_is_no_fault() -> None:
    reply = read_reply('{"entities":[{"name":"Ann\nLee","type":2}]}', EntityReply)
    assert reply.entities[0].name.split() == ["Ann", "Lee"]


@pytest.mark.parametrize(
    "text",
    [
        'Either {"supported":[1]} or {"supported":[2]}',
        'It is {"supported":[1',
        "{" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_words_around_a_reply_that_is_not_clear_are_not_guessed_at(text: str) -> None:
    with pytest.raises(BadReplyError, match="not JSON"):
        read_reply(text, GroundingReply)


def test_numbers_may_come_as_texts() -> None:
    reply = read_reply('{"relations":[{"subject":"1","property":"2","object":"3"}]}', RelationReply)
    assert (reply.relations[0].subject, reply.relations[0].object) == (1, 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("Sure! Here it is", "not JSON"),
        ('{"entities":[{"name":"Ac', "not JSON"),
        ('{"entities":[{"name":"Acme"}]}', "type"),
        ('{"entities":[{"name":"Acme","type":"company"}]}', "int"),
        ('{"answer":[]}', "entities"),
        ("[]", "object"),
        ("null", "object"),
        ('{"entities":[{"name":"' + "x" * 2000 + '","type":1}]}', "length"),
        ("[" * 100_000, "JSON"),
    ],
)
def test_a_bad_reply_says_what_is_wrong_in_few_words(text: str, said: str) -> None:
    with pytest.raises(BadReplyError, match=said) as error:
        read_reply(text, EntityReply)
    assert len(str(error.value)) < 300


@given(st.text())
def test_no_text_does_anything_but_fit_or_not(text: str) -> None:
    for kind in KINDS:
        try:
            assert isinstance(read_reply(text, kind), kind)
        except BadReplyError:
            pass


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_closed_complete_and_without_enumerations(kind: type) -> None:
    written = json.dumps(schema_of(kind))
    assert "enum" not in written

    def check(node: object) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
            for value in node.values():
                check(value)

    check(schema_of(kind, with_confidence=True))


def test_what_is_no_reply_has_no_schema() -> None:
    with pytest.raises(TypeError):
        schema_of(NamedEntity)


def test_with_several_samples_it_is_the_share_that_agree() -> None:
    samples = [
        [SampledItem("a"), SampledItem("b")],
        [SampledItem("a")],
        [SampledItem("a"), SampledItem("c"), SampledItem("a")],
        [SampledItem("b")],
    ]
    assert agree(samples, minimum=0.5) == [Agreed("a", 0.75, "agreement"), Agreed("b", 0.5, "agreement")]


def test_with_one_sample_the_model_may_speak_for_itself() -> None:
    assert agree([[SampledItem("a", 80), SampledItem("b")]], minimum=0.5) == [
        Agreed("a", 0.8, "model"),
        Agreed("b", None, "rule"),
    ]


def test_a_model_that_is_sure_of_itself_does_not_outvote_the_others() -> None:
    assert agree([[SampledItem("a", 100)], [], []], minimum=0.5) == []
