DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
PARTS = [
    (1000, "M"),
    (900, "CM"),
    (500, "D"),
    (400, "CD"),
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
]


def write(number):
    text = ""
    for value, sign in PARTS:
        while number >= value:
            text += sign
            number -= value
    return text


def roman_to_int(text):
    text = text.strip().upper()
    if not text or any(sign not in DIGITS for sign in text):
        raise ValueError(f"no Roman number: {text!r}")
    total = 0
    for place, sign in enumerate(text):
        value = DIGITS[sign]
        following = DIGITS[text[place + 1]] if place + 1 < len(text) else 0
        total += -value if value < following else value
    if total > 3999 or write(total) != text:
        raise ValueError(f"not how {total} is written: {text!r}")
    return total
