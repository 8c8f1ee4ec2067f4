import csv

seen = set()
with open("/app/people.csv", newline="") as source, open("/app/clean.csv", "w", newline="") as target:
    rows = csv.reader(source)
    out = csv.writer(target, lineterminator="\n")
    out.writerow(next(rows))
    for name, year in rows:
        name = " ".join(word.capitalize() for word in name.split())
        year = "18" + year[1:] if year.startswith("'") else year
        if (name, year) not in seen:
            seen.add((name, year))
            out.writerow([name, year])
