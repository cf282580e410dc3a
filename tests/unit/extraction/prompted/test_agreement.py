"""Confidence says what it is: the share of samples, the model's own word, or a rule's judgement."""

from sameas.extraction.extractors.prompted.agreement import Agreed, StatedFact, agree


def test_with_several_samples_it_is_the_share_that_agree() -> None:
    samples = [
        [StatedFact("a"), StatedFact("b")],
        [StatedFact("a")],
        [StatedFact("a"), StatedFact("c"), StatedFact("a")],
        [StatedFact("b")],
    ]
    assert agree(samples, minimum=0.5) == [Agreed("a", 0.75, "agreement"), Agreed("b", 0.5, "agreement")]


def test_with_one_sample_the_model_may_speak_for_itself() -> None:
    assert agree([[StatedFact("a", 80), StatedFact("b")]], minimum=0.5) == [
        Agreed("a", 0.8, "model"),
        Agreed("b", None, "rule"),
    ]


def test_a_model_that_is_sure_of_itself_does_not_outvote_the_others() -> None:
    assert agree([[StatedFact("a", 100)], [], []], minimum=0.5) == []
