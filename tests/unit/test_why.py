"""What changed between two versions, in sentences."""

from clickclock.attribution.reporting.difference import Cause
from clickclock.cli.attribution_why import SENTENCES, sentences

NOTHING = {"differing": 0, "orders": [], "causes": {}, "models": {"added": [], "gone": []}, "settings": []}


def test_every_cause_has_its_sentences() -> None:
    assert SENTENCES.keys() == set(Cause)


def test_nothing_that_differs_is_one_sentence() -> None:
    assert list(sentences(NOTHING, 7)) == ["Since version 7, no order differs."]


def test_causes_models_and_settings_are_told_and_what_is_not_counted() -> None:
    difference = {
        "differing": 5,
        "orders": [{}, {}, {}],
        "causes": {"click_came": 2, "amended": 1},
        "models": {"added": ["markov"], "gone": []},
        "settings": [{"name": "time_zone", "before": "UTC", "after": "Europe/Berlin"}],
    }
    assert list(sentences(difference, 1)) == [
        "Since version 1, 5 orders differ:",
        "- models added: markov.",
        "- the setting time_zone is Europe/Berlin, and was UTC.",
        "- 2 orders have a touchpoint that came later.",
        "- 1 order was refunded, cancelled or corrected by the shop.",
        "Causes are counted in 3 of them; 2 more differ.",
    ]
