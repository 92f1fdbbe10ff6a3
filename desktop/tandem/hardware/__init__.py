"""What this machine is. Knows nothing of Qt."""
