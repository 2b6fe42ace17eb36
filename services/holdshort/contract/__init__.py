"""The AG-UI interrupt contract: what is admitted, refused and shown. Pure; start at thread.py."""
