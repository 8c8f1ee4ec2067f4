import sys

sys.path.insert(0, "/app")
from words import reverse_words

assert reverse_words("a b c") == "c b a"
assert reverse_words("  one   two ") == "two one"
assert reverse_words("") == ""
