"""Policies: the native torch engine, scripted ones, and the rendering between messages and token ids."""
