"""The models: which pairs there are, getting their files, and knowing that a file is what it says. No Qt here."""
