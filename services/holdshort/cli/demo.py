"""`holdshort demo`."""


def demo() -> None:
    """Placeholder while the router is being written."""
