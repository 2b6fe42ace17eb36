"""The classes that are a record and the schema that describes it name the same members and defaults."""

from typing import Any, Final

import msgspec
import pytest
from tests.schemas.catalogue import ALL

from holdshort.contract import pending, routes, state
from holdshort.router import gathering
from holdshort.stream import positions

PENDING: Final = "pending.v1"
GATHERING: Final = "gathering.v1"
RECORDS: Final[list[tuple[type[msgspec.Struct], str, str]]] = [
    (pending._Pending, PENDING, ""),
    (state.Pointer, PENDING, "/$defs/pointer"),
    (state.ToolCall, PENDING, "/$defs/toolCall"),
    (state.Run, PENDING, "/$defs/run"),
    (state.Interrupt, PENDING, "/$defs/interrupt"),
    (state.Pause, PENDING, "/$defs/pause"),
    (state.Context, PENDING, "/$defs/pause/properties/context"),
    (state.Try, PENDING, "/$defs/pause/properties/try/anyOf/0"),
    (state.Refusal, PENDING, "/$defs/pause/properties/refusal/anyOf/0"),
    (state.EndedRun, PENDING, "/$defs/endedRun"),
    (state.GonePause, PENDING, "/$defs/gonePause"),
    (gathering.Gathering, GATHERING, ""),
    (gathering.Asked, GATHERING, "/properties/asked/items"),
    (gathering.Answer, GATHERING, "/$defs/answer"),
    (gathering.Claim, GATHERING, "/properties/asked/items/properties/claim/anyOf/0"),
    (routes.Policy, GATHERING, "/$defs/policy"),
    (gathering.Receipt, GATHERING, "/properties/receipts/items"),
    (positions.Positions, "positions.v1", ""),
]
# Optional in the class, always there in the record.
ALWAYS_WRITTEN: Final = {
    (state.Pause, "inputsEnd"),  # unknown only until just before the opening is committed
    (positions.Positions, "v"),
}


@pytest.mark.parametrize(("kind", "schema", "place"), RECORDS, ids=lambda one: getattr(one, "__name__", ""))
def test_class_and_schema_agree(kind: type[msgspec.Struct], schema: str, place: str) -> None:
    described = _at(ALL[schema].document, place)
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    always = {name for where, name in ALWAYS_WRITTEN if where is kind}

    assert described["properties"].keys() == fields.keys()
    required = {name for name, field in fields.items() if field.required}
    assert set(described.get("required", [])) == required | always
    absent = {name for name, field in fields.items() if field.default is msgspec.UNSET}  # which is not null
    for name in fields.keys() - required - always - absent:
        assert described["properties"][name]["default"] == _default(fields[name]), name


def _at(document: Any, place: str) -> dict[str, Any]:
    for step in place.split("/")[1:]:
        document = document[int(step) if isinstance(document, list) else step]
    found: dict[str, Any] = document
    return found


def _default(field: msgspec.structs.FieldInfo) -> Any:
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return msgspec.to_builtins(value) if not isinstance(value, tuple) else list(value)
