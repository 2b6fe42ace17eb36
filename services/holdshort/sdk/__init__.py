"""What an agent service or a team's service imports; it needs the extra `sdk`."""

from importlib.util import find_spec


class InstallExtraError(ImportError):
    """A package of an extra is not installed; the message says which."""


def check_extra(extra: str, packages: dict[str, str]) -> None:
    """Raises InstallExtraError if a package is not there; `packages` has its name by its module."""
    for module, package in packages.items():
        if find_spec(module) is None:
            raise InstallExtraError(f"{package} is not installed: install holdshort[{extra}]")


check_extra("sdk", {"ag_ui": "ag-ui-protocol", "jsonpatch": "jsonpatch"})
