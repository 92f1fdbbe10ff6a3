"""The speculation engine. It runs in a process of its own (`host`); others talk to it through `client`.

Import `client`, `protocol` and the leaf modules from anywhere. Everything that imports `bindings` loads llama.cpp and
belongs in the engine's process.
"""
