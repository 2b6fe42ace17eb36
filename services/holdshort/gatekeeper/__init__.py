"""The gatekeeper: judges every input and every agent event of a thread, and remembers its pause."""
