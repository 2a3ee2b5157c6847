"""Agents: one file for each thing that attribution does, such as collect, compact, credit, report and erase.

Each knows the journal, the lake, the engines and the files by their doors. No agent imports another: they meet in the
journal and in the lake.
"""
