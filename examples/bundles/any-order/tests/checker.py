import sys

question, said, expected = (open(name).read() for name in sys.argv[1:4])
pairs = [line.split() for line in question.split("\n") if line.strip()]
names = {name for pair in pairs for name in pair}
words = said.split()
if expected.strip() == "impossible":
    right = said.strip() == "impossible"
else:
    right = sorted(words) == sorted(names) and all(words.index(a) < words.index(b) for a, b in pairs)
print("right" if right else "wrong")
