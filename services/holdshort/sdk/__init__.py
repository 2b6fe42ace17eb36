"""What an agent service or a team's service imports."""
