import sys
from collections import Counter

counts = Counter(sys.stdin.read().split())
for word, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
    print(word, count)
