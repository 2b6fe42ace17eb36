"""`schemas/config.schema.json` is what `holdshort config schema` prints."""

from tests.schemas.catalogue import SCHEMAS
from typer.testing import CliRunner

from holdshort.cli import app


def test_the_published_schema_of_the_configuration_is_up_to_date() -> None:
    printed = CliRunner().invoke(app, ["config", "schema"]).output

    published = (SCHEMAS / "config.schema.json").read_text()
    assert published == printed, "renew it: holdshort config schema > schemas/config.schema.json"
