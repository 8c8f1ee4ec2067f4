from spans.merge import merge


def gaps(spans, start, end):
    """The spans of [start, end) that no span of the list covers."""
    free, place = [], start
    for low, high in merge(spans):
        if low > place:
            free.append((place, min(low, end)))
        place = max(place, high)
        if place >= end:
            break
    if place < end:
        free.append((place, end))
    return free
