"""Conversations: what was said, kept on disk. Knows nothing of Qt."""
