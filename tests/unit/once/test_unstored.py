"""Work that was done while the store could not be told: nobody takes it for a success that is kept."""

import asyncio
import threading
from os import urandom

import pytest

from sameas import AsyncEngine, Engine, IdempotentProcessor, OutcomeUnknown, Policy, StoreUnavailable
from sameas.once.errors import BatchFailed, StoreClosed, StoreMisconfigured
from sameas.once.observe import CallEnded
from sameas.once.steps import Pause
from sameas.once.store import AsyncStore, Store
from sameas.stores.memory import MemoryBackend
from sameas.stores.tiered import TieredBackend

SHORT = Policy(lease=0.05)


class Down(MemoryBackend):
    """A store that does not answer from the first hand-in on, until that of the number `back_at`."""

    def __init__(self, error=StoreUnavailable):
        super().__init__()
        self.error = error
        self.hand_ins = 0
        self.is_down = False
        self.back_at = None

    def _ask(self, command):
        if "complete" in repr(command):
            self.hand_ins += 1
            self.is_down = self.hand_ins != self.back_at
        if self.is_down:
            raise self.error

    def perform(self, command):
        self._ask(command)
        return super().perform(command)


@pytest.fixture(params=["sync", "async"])
def call(request):
    """Calls a method of an engine on a back end, whichever engine it is."""

    def call(backend, method, *args, policy=SHORT, observers=(), **options):
        if request.param == "sync":
            return getattr(Engine(Store(backend), policy=policy, observers=observers), method)(*args, **options)
        engine = AsyncEngine(AsyncStore(backend), policy=policy, observers=observers)
        return asyncio.run(getattr(engine, method)(*args, **options))

    # For batches: one after the other, as threads do it anyway.
    call.one_by_one = {} if request.param == "sync" else {"concurrency": 1}
    return call


@pytest.mark.parametrize("method", ["run", "record"])
def test_a_result_that_could_not_be_stored_is_raised_with_the_result(call, method):
    with pytest.raises(OutcomeUnknown) as unknown:
        call(Down(), method, lambda ctx: {"charge": 1}, scope="s", key="k")
    assert unknown.value.result == {"charge": 1}
    assert isinstance(unknown.value.__cause__, StoreUnavailable)


def test_a_decorated_function_raises_it_too():
    @Engine(Store(Down()), policy=SHORT).once(scope="s")
    def charge(order):
        return f"charged {order}"

    with pytest.raises(OutcomeUnknown) as unknown:
        charge(1)
    assert unknown.value.result == "charged 1"


def test_whoever_holds_a_claim_is_told_so_when_it_finishes():
    held = Engine(Store(Down()), policy=SHORT).begin(scope="s", key="k")
    with pytest.raises(OutcomeUnknown) as unknown:
        held.finish("charged")
    assert unknown.value.result == "charged"

    async def main():
        held = await AsyncEngine(AsyncStore(Down()), policy=SHORT).begin(scope="s", key="k")
        with pytest.raises(OutcomeUnknown) as unknown:
            await held.finish("charged")
        assert unknown.value.result == "charged"

    asyncio.run(main())


def test_a_processor_and_a_store_with_a_local_tier_raise_it_too():
    processor = IdempotentProcessor(lambda message: "done", scope="s", store=Store(Down()), policy=SHORT)
    tier = TieredBackend(Down(), ttl=3_600)
    for process in (
        lambda: processor.process({"id": 1}),
        lambda: Engine(Store(tier), policy=SHORT).run(lambda ctx: "done", scope="s", key="k"),
    ):
        with pytest.raises(OutcomeUnknown) as unknown:
            process()
        assert unknown.value.result == "done"
    # The tier does not have what its store was not told of.
    with pytest.raises(StoreUnavailable):
        Engine(Store(tier), policy=SHORT).run(pytest.fail, scope="s", key="k")


@pytest.mark.parametrize("policy", [Policy(lease=3_600), Policy(lease=0.05, hand_in_for=3_600)])
def test_the_result_is_handed_in_for_as_long_as_the_lease_is_ours_or_the_policy_says(call, policy):
    backend = Down()
    backend.back_at = 6
    assert call(backend, "record", lambda ctx: "done", policy=policy, scope="s", key="k").stored
    assert backend.hand_ins == 6
    assert call(backend, "record", lambda ctx: "again", scope="s", key="k").result == "done"


@pytest.mark.parametrize("lasts", [{}, {"hand_in_for": 1_000}])
def test_it_is_handed_in_until_the_last_moment_and_no_longer(lasts, monkeypatch):
    now = 1_000.0
    for module in ("call", "call_state"):
        monkeypatch.setattr(f"sameas.once.{module}.monotonic", lambda: now)

    def pass_time(pause):
        nonlocal now
        now += pause.seconds

    backend = Down()
    engine = Engine(Store(backend), policy=Policy(lease=600, **lasts))
    engine._effects[Pause] = pass_time
    with pytest.raises(OutcomeUnknown):
        engine.run(lambda ctx: "done", scope="s", key="k")
    assert now == pytest.approx(1_000 + lasts.get("hand_in_for", 600))
    assert backend.hand_ins > 600, "a store that is back is noticed within a second"


def test_a_lease_that_is_over_is_not_waited_for(call):
    backend = Down()
    with pytest.raises(OutcomeUnknown):
        call(backend, "run", lambda ctx: "done", policy=Policy(lease=3_600, hand_in_for=0), scope="s", key="k")
    assert backend.hand_ins == 1


def test_returning_it_anyway_is_a_choice_and_the_record_says_so(call):
    policy = Policy(lease=0.05, on_unstored="return")
    assert call(Down(), "run", lambda ctx: "done", policy=policy, scope="s", key="k") == "done"
    record = call(Down(), "record", lambda ctx: "done", policy=policy, scope="s", key="k")
    assert (record.result, record.stored, record.was_replay) == ("done", False, False)


def test_a_choice_that_means_nothing_is_refused():
    with pytest.raises(ValueError, match="'raise' or 'return'"):
        Policy(on_unstored="ignore")


def test_a_store_that_refuses_the_result_is_told_that_the_work_is_done(call):
    class Choosy(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            if b"canary" in outcome.data:
                raise OverflowError("string or blob too big")
            return super().complete(lease, outcome, retain_for)

    backend, runs = Choosy(), []
    record = call(backend, "record", lambda ctx: runs.append(1) or "canary", scope="s", key="k")
    assert (record.result, record.stored, record.not_kept) == ("canary", True, "OverflowError")
    assert call(backend, "record", lambda ctx: runs.append(1), scope="s", key="k").was_replay
    assert runs == [1]


@pytest.mark.parametrize("policy", [SHORT, Policy(hand_in_for=0.0), Policy(hand_in_for=0.05)])
def test_a_store_that_hangs_up_on_a_large_result_is_told_that_the_work_is_done(call, policy):
    class Narrow(MemoryBackend):
        def complete(self, lease, outcome, retain_for):
            if len(outcome.data) > 1_000:
                raise StoreUnavailable("the connection was closed")
            return super().complete(lease, outcome, retain_for)

    backend, runs, large = Narrow(), [], urandom(100_000)
    record = call(backend, "record", lambda ctx: runs.append(1) or large, policy=policy, scope="s", key="k")
    assert (record.result, record.stored, record.not_kept) == (large, True, "StoreUnavailable")
    assert call(backend, "record", lambda ctx: runs.append(1), scope="s", key="k").was_replay
    assert runs == [1]


@pytest.mark.parametrize("error", [StoreMisconfigured, OSError])
def test_a_store_that_refuses_everything_gives_no_error_of_its_driver(call, error):
    with pytest.raises(OutcomeUnknown) as unknown:
        call(Down(error), "run", lambda ctx: "done", scope="s", key="k")
    assert (unknown.value.result, type(unknown.value.__cause__)) == ("done", error)


def test_a_store_that_was_closed_is_not_asked_again(call):
    backend = Down(StoreClosed)
    with pytest.raises(OutcomeUnknown):
        call(backend, "run", lambda ctx: "done", policy=Policy(lease=3_600), scope="s", key="k")
    assert backend.hand_ins <= 2


def test_a_batch_tells_which_of_its_results_could_not_be_stored_and_runs_no_more(call):
    runs = []

    def work(ctx, payload):
        runs.append(payload)
        return payload * 10

    with pytest.raises(BatchFailed) as failed:
        call(Down(), "run_many", work, [1, 2, 3], scope="s", **call.one_by_one)
    first, *rest = failed.value.results
    assert (type(first), first.result) == (OutcomeUnknown, 10)
    assert [type(each) for each in rest] == [StoreUnavailable, StoreUnavailable]
    assert runs == [1], "a lease that nobody could renew is no right to work"


def test_those_who_shared_the_call_are_told_as_well_and_do_not_run_it_again():
    engine, runs, told = Engine(Store(Down()), policy=SHORT), [], []
    working, following = threading.Event(), threading.Event()

    def work(ctx):
        runs.append(1)
        working.set()
        following.wait(30)
        return "done"

    def ask():
        try:
            engine.run(work, scope="s", key="k")
        except OutcomeUnknown as unknown:
            told.append(unknown.result)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    working.wait(30)
    (in_flight,) = engine._call_builder.in_flight_calls._in_flight_calls.values()
    while len(in_flight.followers) < 2:
        threading.Event().wait(0.001)
    following.set()
    for thread in threads:
        thread.join(30)
    assert (runs, told) == ([1], ["done"] * 3)


@pytest.mark.parametrize("how", ["raise", "return"])
def test_whoever_observes_is_told_that_the_result_was_not_stored(call, how):
    class Noting:
        def __init__(self):
            self.ended = []

        def on(self, event):
            if isinstance(event, CallEnded):
                self.ended.append(event)

    noting = Noting()
    policy = Policy(lease=0.05, on_unstored=how)
    try:
        call(Down(), "run", lambda ctx: "done", policy=policy, observers=[noting], scope="s", key="k")
    except OutcomeUnknown:
        assert how == "raise"
    (ended,) = noting.ended
    assert (ended.stored, ended.kept, ended.how) == (False, True, "OutcomeUnknown" if how == "raise" else "fresh")
