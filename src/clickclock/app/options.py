"""The faults of the options of a plug, an executor or a target: a sentence for each.

Never repeats a value: it may be a secret. Invariant: a fault has the place of its option in the configuration.

>>> from pydantic import BaseModel, ConfigDict
>>> class Options(BaseModel):
...     model_config = ConfigDict(extra="forbid")
...     url: str
>>> try:
...     Options.model_validate({"ulr": "x"})
... except ValidationError as error:
...     [each.message for each in option_faults("notifications.ops", error)]
['Give url.', 'There is no such option.']
"""

from pydantic import ValidationError

from clickclock.foundation.errors import Fault

_SENTENCES = {"extra_forbidden": "There is no such option", "missing": "Give {name}"}


def option_faults(place: str, error: ValidationError) -> list[Fault]:
    """The faults of a table of options at `place`."""
    faults = []
    for each in error.errors(include_url=False, include_input=False):
        field = ".".join([place, *map(str, each["loc"])])
        sentence = _SENTENCES.get(each["type"], each["msg"].removeprefix("Value error, "))
        sentence = sentence.replace("{name}", field.rpartition(".")[2])
        faults.append(Fault(field, f"{sentence[:1].upper()}{sentence[1:]}."))
    return faults
