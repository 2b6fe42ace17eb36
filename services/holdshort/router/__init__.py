"""The router: carries each open interrupt to its team and one whole batch back to the gate."""
