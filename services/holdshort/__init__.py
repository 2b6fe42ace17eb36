"""holdshort: a safe pause between AI agents and the world, on Apache Kafka."""

from importlib.metadata import version

__version__ = version("holdshort")
