import sys

lines = sys.stdin.read().split("\n")
before = [line.split() for line in lines if line.strip()]
names = sorted({name for pair in before for name in pair})
order = []
while names:
    free = [name for name in names if not any(pair[1] == name and pair[0] in names for pair in before)]
    if not free:
        break
    order.append(free[0])
    names.remove(free[0])
print(" ".join(order) if not names else "impossible")
