import math


def summarise(numbers):
    values = [float(number) for number in numbers]
    if not values:
        return {"count": 0, "mean": math.nan, "spread": math.nan, "median": math.nan}
    values.sort()
    count = len(values)
    mean = math.fsum(values) / count
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1)) if count > 1 else 0.0
    half = count // 2
    median = values[half] if count % 2 else (values[half - 1] + values[half]) / 2
    return {"count": count, "mean": mean, "spread": spread, "median": median}
