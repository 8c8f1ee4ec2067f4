import re
import sys


def renamed(name):
    stem, dot, ending = name.rpartition(".")
    if not dot or not stem:
        stem, dot, ending = name, "", ""
    return re.sub(r"[ .-]+", "-", stem).lower() + dot + ending.lower()


names = sys.argv[1:]
new = [renamed(name) for name in names]
if len(set(new)) < len(new):
    sys.exit(3)
for name, other in zip(names, new, strict=True):
    if name != other:
        print(name, "->", other)
