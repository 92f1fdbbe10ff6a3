"""Tandem: Gemma 4 with its drafter, fast and offline on a person's own machine."""

__version__ = "0.1.0"
