"""The scope that travels with messages, and the names of callbacks."""

import asyncio

import pytest
from celery import chain, chord, group

from sameas.identity.ids import uuid7
from sameas.identity.normalize import (
    TASK_HEADER,
    current_scope,
    normalize_context,
    normalize_task,
    task_headers,
)
from sameas.identity.scope import Principal, ScopeError
from sameas.tasks.celery import IdempotentTask
from tests.unit.web.asking import ask, guarded

TENANT, USER = str(uuid7()), str(uuid7())


@pytest.fixture
def strict(bench):
    bench.app.conf.update(sameas_any_tenant=False, sameas_service_id="ingestion-worker")
    return bench


@pytest.fixture
def request_scope():
    """Inside a user's request."""
    scope = normalize_context(principal=Principal(tenant_id=TENANT, user_id=USER))
    entered = current_scope.set(scope)
    yield scope
    current_scope.reset(entered)


def test_a_task_is_a_hop_of_a_service_and_the_user_is_only_the_cause(strict, request_scope):
    seen = []
    task = strict.task(lambda self: seen.append((self.scope, self.audit_meta)), name="task", bind=True)
    task.delay()
    (message,) = strict.sent()
    strict.deliver(task, headers=message.headers)
    ((scope, audit),) = seen
    assert (scope.tenant_id, scope.user_id, scope.service_id) == (TENANT, None, "ingestion-worker")
    assert (audit.initiated_by_user_id, audit.created_by_user_id) == (USER, None)
    assert scope.trace_id == audit.trace_id == request_scope.trace_id
    assert scope.invocation_id == audit.invocation_id != request_scope.invocation_id
    assert (scope.idempotency_scope_name, scope.idempotency_key) == ("task", message.headers["id"])
    assert audit.idempotency_key == scope.idempotency_key


def test_what_runs_inside_a_task_shares_its_scope_and_nothing_is_left_behind(bench):
    task = bench.task(lambda self: self.scope is current_scope.get(), name="task", bind=True)
    assert bench.deliver(task) == ("SUCCESS", True)
    assert current_scope.get() is None


def test_two_tenants_with_one_task_id_never_meet(bench):
    runs = []
    task = bench.task(lambda self: runs.append(self.scope.tenant_id), name="task", bind=True)
    for tenant in ("a", "b"):
        scope = normalize_context(service_id="sender", tenant_id=tenant, allow_any_tenant=True)
        bench.deliver(task, headers=task_headers(scope))
    assert runs == ["a", "b"]


def test_the_trace_goes_on_to_a_task_that_a_task_sends(strict, request_scope):
    inner = strict.task(lambda: None, name="inner")
    outer = strict.task(lambda: inner.delay().id, name="outer")
    strict.deliver(outer, headers=task_headers(request_scope))
    (message,) = strict.sent()
    scope, audit = normalize_task(message.headers, service_id="next")
    assert (scope.trace_id, scope.tenant_id) == (request_scope.trace_id, TENANT)
    assert audit.initiated_by_user_id == USER


def test_a_task_of_another_kind_hands_the_scope_on(strict, request_scope):
    inner = strict.task(lambda: None, name="inner")

    @strict.app.task(name="plain", shared=False)
    def plain():
        inner.delay()

    headers = task_headers(request_scope)
    current_scope.set(None)
    strict.deliver(plain, headers=headers)
    (message,) = strict.sent()
    scope, audit = normalize_task(message.headers, service_id="next")
    assert (scope.trace_id, audit.initiated_by_user_id) == (request_scope.trace_id, USER)


def test_the_next_step_of_a_chain_has_the_scope_of_the_one_before(strict, request_scope):
    step = strict.task(lambda number: number + 1, name="step")
    chain(step.s(1), step.s()).apply_async()
    (first,) = strict.sent()
    current_scope.set(None)
    args, _, embed = first.payload
    strict.deliver(step, *args, task_id=first.headers["id"], headers=first.headers, chain=embed["chain"])
    (second,) = strict.sent()
    assert normalize_task(second.headers, service_id="next")[0].trace_id == request_scope.trace_id


def keys_of(messages):
    return [message.headers[TASK_HEADER].get("idempotency_key") for message in messages]


def test_a_key_of_the_senders_choice_goes_to_the_task_as_it_is(strict, request_scope):
    pay = strict.task(lambda: None, name="pay", key_by="client")
    current_scope.set(request_scope.with_key(scope_name="create_order", key="order-1"))
    pay.apply_async(idempotency_key="order-2")
    assert keys_of(strict.sent()) == ["order-2"]


def test_a_key_that_tasks_take_over_from_a_request_is_told_apart_by_task_and_arguments(strict, request_scope):
    arrived = []
    mail = strict.task(
        lambda to, sent_at=0: arrived.append(to), name="mail", key_by="client", exclude_fields={"sent_at"}
    )
    text = strict.task(lambda to, sent_at=0: None, name="text", key_by="client")
    current_scope.set(request_scope.with_key(scope_name="create_order", key="order-1"))
    for to in ("buyer", "seller"):
        mail.delay(to)
    mail.delay(to="buyer", sent_at=5)
    text.delay("buyer")
    messages = strict.sent()
    buyer, seller, again, other = keys_of(messages)
    assert buyer == again
    assert len({buyer, seller, other}) == 3
    for message in messages[:3]:
        args, kwargs, _ = message.payload
        assert strict.deliver(mail, *args, headers=message.headers, kwargs=kwargs)[0] == "SUCCESS"
    assert arrived == ["buyer", "seller"]


def test_a_key_that_a_task_took_over_goes_on_to_the_tasks_that_it_sends_each_with_one_of_its_own(strict, request_scope):
    second = strict.task(lambda to: None, name="second", key_by="client")
    first = strict.task(lambda: [second.delay(to).id for to in ("a", "b", "a")] and None, name="first", key_by="client")
    current_scope.set(request_scope.with_key(scope_name="create_order", key="order-1"))
    first.delay()
    (message,) = strict.sent()
    strict.deliver(first, headers=message.headers)
    a, b, again = keys_of(strict.sent())
    assert a == again
    assert len({a, b, *keys_of([message])}) == 3


@pytest.mark.parametrize("how", ["delay", "apply_async", "apply", "send_task", "signature", "headers"])
def test_a_task_that_needs_a_key_and_has_none_fails_where_it_is_sent(bench, how):
    pay = bench.task(lambda amount: None, name="pay", key_by="client")
    headers = task_headers(normalize_context(service_id="beat", tenant_id="t", allow_any_tenant=True))
    send = {
        "delay": lambda: pay.delay(5),
        "apply_async": lambda: pay.apply_async((5,)),
        "apply": lambda: pay.apply((5,)),
        "send_task": lambda: bench.app.send_task("pay", (5,)),
        "signature": lambda: pay.s(5).apply_async(),
        "headers": lambda: pay.apply_async((5,), headers=headers),
    }
    with pytest.raises(ValueError, match="pay needs a key: send it with idempotency_key="):
        send[how]()
    assert not bench.sent()


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "x" * 1_025, 7, b"order-1"])
def test_a_key_that_no_store_could_hold_is_refused_where_the_task_is_sent(bench, key):
    pay = bench.task(lambda amount: None, name="pay", key_by="client")
    for send in (pay.apply_async, pay.apply, lambda args, **options: bench.app.send_task("pay", args, **options)):
        with pytest.raises(ScopeError, match="idempotency_key must be 1 to 1024 characters"):
            send((5,), idempotency_key=key)
    assert not bench.sent()


def test_send_task_takes_a_key(bench):
    runs = []
    pay = bench.task(lambda amount: runs.append(amount), name="pay", key_by="client")
    for _ in range(2):
        bench.app.send_task("pay", (5,), idempotency_key="order-1")
    bench.app.signature("pay", (6,)).apply_async(idempotency_key="order-2")
    messages = bench.sent()
    assert keys_of(messages) == ["order-1", "order-1", "order-2"]
    for message in messages:
        bench.deliver(pay, *message.payload[0], headers=message.headers)
    assert runs == [5, 6]


def test_send_task_takes_a_key_where_the_task_is_not_known(bench):
    bench.app.send_task("elsewhere.pay", (5,), idempotency_key="order-1")
    bench.app.send_task("elsewhere.plain", (5,))
    keyed, plain = bench.sent()
    assert keys_of([keyed]) == ["order-1"]
    assert TASK_HEADER not in plain.headers


def test_a_task_of_main_says_its_scope(bench):
    assert bench.task(lambda amount: None, name="__main__.pay", scope_name="pay").scope_in_use == "pay"
    refused = bench.task(lambda amount: None, name="__main__.charge")
    with pytest.raises(ValueError, match="every program has a __main__.charge: say scope_name="):
        refused.delay(5)


def test_two_callers_whose_requests_have_one_key_never_meet_in_a_task(bench):
    pay = bench.task(lambda self, amount: self.audit_meta.initiated_by_user_id, name="pay", bind=True, key_by="client")

    class Desk:
        async def authenticate(self, credentials):
            if credentials is None:
                return None
            kind, name = credentials.token.split("/")
            return Principal(tenant_id="acme", **{f"{kind}_id": name})

    async def handler(scope, receive, send):
        pay.delay(5)
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = guarded(handler, authenticator=Desk(), public=True, tenant_of=lambda scope: "acme")
    forged = Principal(tenant_id="acme", user_id="ann").digest
    for who, key in (
        ("user/ann", "one"),
        ("user/bob", "one"),
        ("service/ann", "one"),
        (None, "one"),
        (None, f"{forged}.one"),
    ):
        headers = [] if who is None else [("Authorization", f"Bearer {who}")]
        assert asyncio.run(ask(app, key=f'"{key}"', headers=headers)).status == 202
    messages = bench.sent()
    assert len({message.headers[TASK_HEADER]["idempotency_key"] for message in messages}) == 5
    assert [bench.deliver(pay, 5, headers=message.headers)[1] for message in messages[:2]] == ["ann", "bob"]


@pytest.mark.parametrize("mode", ["enforce", "shadow", "off"])
@pytest.mark.parametrize("principal_of", [None, lambda scope: scope["session"]["user_id"]])
def test_nor_do_callers_whom_the_application_names_itself(bench, principal_of, mode):
    pay = bench.task(lambda amount: amount, name="pay", key_by="client")

    async def handler(scope, receive, send):
        await asyncio.to_thread(pay.delay, 5)
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = guarded(handler, principal_of=principal_of, mode=mode)
    for who in ("ann", "bob"):
        named = {"session": {"user_id": who}} if principal_of else {"user": {"id": who}}
        assert asyncio.run(ask(app, key='"one"', **named)).status == 202
    assert asyncio.run(ask(app, key='"one"', session={"user_id": None})).status == 202
    assert len({message.headers[TASK_HEADER]["idempotency_key"] for message in bench.sent()}) == 3


@pytest.mark.parametrize("mode", ["shadow", "off"])
def test_nor_do_callers_of_whom_only_a_credential_is_known(bench, mode):
    mail = bench.task(lambda to: to, name="mail", key_by="client")

    async def handler(scope, receive, send):
        await asyncio.to_thread(mail.delay, "ann@example.org")
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = guarded(handler, mode=mode)
    for token in ("a", "b", None, "b", "a"):
        headers = [] if token is None else [("Authorization", f"Bearer {token}")]
        assert asyncio.run(ask(app, key='"one"', headers=headers)).status == 202
    a, b, nobody, *again = [message.headers[TASK_HEADER]["idempotency_key"] for message in bench.sent()]
    assert len({a, b, nobody}) == 3
    assert again == [b, a]


def test_a_key_beside_headers_that_have_a_scope_is_refused(bench):
    task = bench.task(lambda: None, name="task", key_by="client")
    headers = task_headers(normalize_context(service_id="s", tenant_id="", allow_any_tenant=True))
    with pytest.raises(ValueError, match="task_headers"):
        task.apply_async(headers=headers, idempotency_key="order-1")


def test_the_library_starts_a_trace_where_there_is_none(bench):
    task = bench.task(lambda: None, name="task")
    task.delay()
    (message,) = bench.sent()
    scope, _ = normalize_task(message.headers, service_id="next", allow_any_tenant=True)
    assert (scope.tenant_id, scope.trace.parent_id != "") == ("", True)


def test_the_strict_mode_refuses_to_send_outside_of_a_scope(strict):
    task = strict.task(lambda: None, name="task")
    with pytest.raises(ScopeError, match="outside of any scope"):
        task.delay()


@pytest.mark.parametrize(
    "headers",
    [{}, {TASK_HEADER: {"v": 1}}, {TASK_HEADER: {"v": 2, "tenant_id": TENANT, "traceparent": ""}}],
    ids=["none", "half of one", "of a later version"],
)
def test_the_strict_mode_refuses_a_message_without_a_proper_scope(strict, headers):
    runs = []
    task = strict.task(lambda: runs.append(1), name="task")
    state, error = strict.deliver(task, headers=headers)
    assert (state, type(error), runs) == ("FAILURE", ScopeError, [])


def test_the_strict_mode_wants_to_know_the_service(bench):
    task = bench.task(lambda: None, name="task", any_tenant=False)
    with pytest.raises(ValueError, match="sameas_service_id"):
        task.delay()


@pytest.mark.parametrize("wanted", [{"case_required": True}, {"starts": "ingestion"}])
def test_a_task_may_demand_a_case_or_the_id_of_its_run(strict, request_scope, wanted):
    task = strict.task(lambda: None, name="task", **wanted)
    state, error = strict.deliver(task, headers=task_headers(request_scope))
    assert (state, type(error)) == ("FAILURE", ScopeError)


def names_in(message):
    """The task ids that a message has and brings: its own, those of the rest of its chain, that of its chord's body."""
    embed = message.payload[2]
    later = [*(embed["chain"] or []), *([embed["chord"]] if embed["chord"] else [])]
    return [message.headers["id"], *(signature["options"]["task_id"] for signature in later)]


def test_callbacks_have_the_same_names_at_every_delivery_also_within_groups_and_chords(bench):
    add = bench.task(lambda number: number, name="add")
    links = [
        add.s(),
        group([add.s(), add.s()], app=bench.app),
        chain(add.s(), add.s(), app=bench.app),
        chord([add.s(), add.s()], add.si(1), app=bench.app),
    ]
    add.apply_async((1,), task_id="one", link=links)
    (first,) = bench.sent()
    args, _, embed = first.payload
    names = []
    for _ in range(2):
        bench.deliver(add, *args, headers=first.headers, callbacks=embed["callbacks"])
        names.append(sorted(name for message in bench.sent() for name in names_in(message)))
    assert names[0] == names[1]
    # One alone, two of the group, two of the chain, two parts of the chord, each of which names its body.
    assert len(set(names[0])) == 8


def test_the_senders_own_signature_is_not_named(bench):
    bench.app.conf.task_always_eager = True
    runs = []
    note = bench.task(lambda number: runs.append(number), name="note")
    add = bench.task(lambda number: number, name="add")
    link = note.s()
    for number in (1, 2):
        add.apply_async((number,), link=link)
    assert runs == [1, 2]
    assert "task_id" not in link.options


def test_the_base_is_one_of_celerys(bench):
    task = bench.task(lambda: None, name="task")
    assert isinstance(bench.app.tasks[task.name], IdempotentTask)
    assert task.acks_late


def test_the_trace_goes_on_from_a_served_request_to_the_task_that_its_handler_sends(strict):
    hops = []
    task = strict.task(lambda self: hops.append((self.scope, self.audit_meta)), name="task", bind=True)

    class Desk:
        async def authenticate(self, credentials):
            return Principal(tenant_id=TENANT, user_id=USER)

    async def handler(scope, receive, send):
        hops.append((current_scope.get(), None))
        task.delay()
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    app = guarded(handler, authenticator=Desk(), any_tenant=False)
    trace = ("traceparent", f"00-{'a1' * 16}-{'b2' * 8}-01")
    for replayed in ("false", "true"):
        assert asyncio.run(ask(app, key='"one"', headers=[trace])).replayed == replayed
    (message,) = strict.sent()
    strict.deliver(task, headers=message.headers)
    (request, _), (started, audit) = hops
    assert request.trace_id == started.trace_id == audit.trace_id == "a1" * 16
    assert request.invocation_id != started.invocation_id
    assert (started.user_id, audit.initiated_by_user_id) == (None, USER)
