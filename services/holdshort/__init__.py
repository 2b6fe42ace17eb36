"""holdshort: a safe pause between AI agents and the world, on Apache Kafka."""


def __getattr__(name: str) -> str:
    """`__version__`, read from the package's metadata only when it is asked for: that takes a while."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version  # noqa: PLC0415 - see above

    return version("holdshort")
