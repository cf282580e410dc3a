"""A question to a model, as tests put it."""

from sameas.llm.models import Ask, Message, Reply, Usage

SCHEMA = {
    "type": "object",
    "properties": {"entities": {"type": "array", "items": {"type": "string"}}},
    "required": ["entities"],
    "additionalProperties": False,
}


def an_ask(text="Acme was founded in Berlin.", **changes):
    given = {
        "messages": (Message("system", "Find the names."), Message("user", text)),
        "schema": SCHEMA,
        "schema_name": "entities",
        "max_output_tokens": 100,
    }
    return Ask(**{**given, **changes})


def a_reply(text='{"entities":["Acme"]}', *, finish="stop", model="compatible:tiny"):
    return Reply(text, Usage(20, 7, reported=True), finish, model)
