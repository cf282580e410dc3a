"""Answers in memory: bounded in size and time, and gone when something was dropped."""

from sameas.server.runs.answers import TTL, Answers, KeptAnswer


class Timer:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def kept(body=b"x" * 100, until=200.0):
    return KeptAnswer("key", body, "company", "v1", 1, until)


def test_an_answer_is_fresh_for_a_while_and_again_when_the_store_was_asked():
    timer = Timer()
    answers = Answers(timer=timer)
    one = kept(until=timer.now)
    answers.keep("space", b"digest", one, drops=0)
    assert not answers.is_fresh(one)
    answers.renew(one)
    timer.now += TTL * 0.9
    assert answers.is_fresh(one)
    timer.now += TTL * 0.2
    assert not answers.is_fresh(one)


def test_answers_of_another_space_are_not_given():
    answers = Answers()
    answers.keep("one", b"digest", kept(), drops=0)
    assert answers.get("one", b"digest") is not None
    assert answers.get("two", b"digest") is None


def test_the_least_recently_used_go_when_there_is_no_more_room():
    answers = Answers(size_bytes=10_000)
    for number in range(30):
        answers.get("space", b"0")
        answers.keep("space", str(number).encode(), kept(), drops=0)
    assert len(answers) == 10_000 // (100 + 512)
    assert answers.get("space", b"0") is not None
    assert answers.get("space", b"1") is None
    answers.keep("space", b"large", kept(b"x" * 2_000), drops=0)
    assert answers.get("space", b"large") is None


def test_an_answer_that_was_made_while_something_was_dropped_is_not_kept():
    answers = Answers()
    before = answers.drops
    answers.drop()
    answers.keep("space", b"digest", kept(), drops=before)
    assert len(answers) == 0
