"""The AG-UI interrupt contract: what is admitted, what is refused, what is shown. Pure; start at thread.py."""
