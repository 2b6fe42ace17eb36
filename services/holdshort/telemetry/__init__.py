"""Metrics and log events, each defined once."""
