import json

try:
    with open("/app/merged.json") as file:
        got = json.load(file)
except (OSError, ValueError):
    got = None
with open("/tests/expected.json") as file:
    right = got == json.load(file)
with open("/logs/verifier/reward.txt", "w") as out:
    out.write(f"{float(right)}\n")
