def digest(text):
    total = 0
    for place, char in enumerate(text, 1):
        total = (total + place * ord(char)) % 9973
    return total
