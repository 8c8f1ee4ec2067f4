import json


def merged(base, local):
    result = dict(base)
    for key, value in local.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            result[key] = merged(below if isinstance(below, dict) else {}, value)
        else:
            result[key] = value
    return result


with open("/app/base.json") as base, open("/app/local.json") as local:
    settings = merged(json.load(base), json.load(local))
with open("/app/merged.json", "w") as out:
    json.dump(settings, out)
