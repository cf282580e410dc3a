"""`POST /api/v1/collections/{id}/ask`: a question in plain words, answered with sentences of documents.

Rule: the model writes a query and nothing else; what it may spend is bounded, and counts for the tenant's day.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from starlette.types import ASGIApp

from sameas.llm.errors import CallRefused
from sameas.llm.models import ModelError
from sameas.questions.ask import Answered, answer_question
from sameas.questions.desk import QuestionDesk
from sameas.questions.support import Cited
from sameas.server.http.replies import json_reply, query_of
from sameas.server.http.route import Asked, Parameter, Reply, Route
from sameas.server.http.routes.collections import open_for
from sameas.server.problems import Problem
from sameas.server.runs.day_accounts import Spent, total
from sameas.server.schemas import Schema

# Set aside before a question is asked; what it took is counted afterwards.
_LIKELY = Spent(4096)


class Question(Schema, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question, and which of the service's models is to write its query."""

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


async def ask_question(asked: Asked) -> ASGIApp:
    query_of(asked.request)
    wish = msgspec.json.decode(asked.body, type=Question)
    desk = asked.service.questions.desk(await open_for(asked, "reader"))
    try:
        return json_reply(await asked.service.do(_answered(asked, desk, wish)))
    except (ModelError, CallRefused) as error:
        raise Problem(503, "model-unavailable", f"the model gave no query: {error}", retry_after=5.0) from error


async def _answered(asked: Asked, desk: QuestionDesk, wish: Question) -> Answered:
    service, tenant = asked.service, asked.caller.ctx.tenant_id
    supervisor = service.question_supervisor(wish.model, tenant)
    reserved = await service.accounts.begin(tenant, likely=_LIKELY, most=_LIKELY)
    try:
        return await answer_question(desk, wish.question, supervisor)
    finally:
        await service.accounts.end(reserved, total(supervisor.usage.rows))


_SENTENCE = "Acme Ltd is based in Paris."
_EXAMPLE = Answered(
    question="Where is Acme based?",
    text="Paris [1]",
    is_supported=True,
    sparql="SELECT ?city { ?company :headquarters ?city } LIMIT 50",
    columns=("city",),
    rows=(("Paris",),),
    citations=(Cited(text=_SENTENCE, document="sha256-0", document_name="a.txt", start=0, end=27),),
)
ROUTES = (
    Route(
        method="POST",
        path="/api/v1/collections/{id}/ask",
        handle=ask_question,
        name="askCollection",
        tag="collections",
        summary="Ask in plain words: a model writes the query, and sentences of documents give the answer.",
        parameters=(
            Parameter(name="id", place="path", required=True, description="Its id or its name.", example="press"),
        ),
        body=Question,
        body_example={"question": "Where is Acme based?"},
        replies={200: Reply(description="The answer.", schema=Answered, example=msgspec.to_builtins(_EXAMPLE))},
        problems=(400, 403, 404, 413, 422, 429),
    ),
)
