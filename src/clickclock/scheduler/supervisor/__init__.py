"""The process supervisor: a small program, one per data folder, that spawns attempts and outlives the service.

It never imports anything but the standard library, the clock and itself, and it never decides what should run.
Invariants: it starts in the time of a bare interpreter; what it knows is in its journal before anyone acts on it.
Run by path, isolated and without site packages: `python -I -S …/supervisor/__main__.py DATA_FOLDER/supervisor`.
"""
