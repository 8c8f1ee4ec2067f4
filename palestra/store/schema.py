"""The tables, one schema for every database. ``seq`` columns keep the order of arrival."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text

SCHEMA_VERSION = 3

tables = MetaData()

meta = Table("meta", tables, Column("name", String, primary_key=True), Column("value", String, nullable=False))

runs = Table(
    "runs",
    tables,
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("name", String, nullable=False, index=True),
    Column("kind", String, nullable=False),
    Column("status", String, nullable=False),
    Column("created", Float, nullable=False),  # Unix seconds
    Column("parent", String),
    Column("config", Text, nullable=False),  # JSON
)

tasks = Table(
    "tasks",
    tables,
    Column("id", Integer, primary_key=True),
    Column("hash", String, nullable=False, unique=True),
    Column("env", String, nullable=False, index=True),
    Column("split", String, nullable=False),
    Column("body", Text, nullable=False),  # JSON
)

groups = Table(
    "groups",
    tables,
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False),
    Column("task", Integer, ForeignKey("tasks.id"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("size", Integer, nullable=False),  # trajectories
    Column("hash", String, nullable=False),  # of all that reading it gives back, seconds left out
    Column("trained_step", Integer),  # of the checkpoint that contains it; NULL: not spent
    Index("groups_of_run", "run", "step"),
)

leases = Table(
    "leases",
    tables,
    Column("group", Integer, ForeignKey("groups.seq"), primary_key=True),
    Column("consumer", String, nullable=False, index=True),
    Column("until", Float, nullable=False),  # Unix seconds
)

nodes = Table(
    "nodes",
    tables,
    Column("group", Integer, ForeignKey("groups.seq"), primary_key=True),
    Column("node", Integer, primary_key=True),  # position in the group's tree
    Column("parent", Integer, nullable=False),  # −1: a root
    Column("is_sampled", Integer, nullable=False),
    Column("count", Integer, nullable=False),  # tokens
    Column("ids", LargeBinary, nullable=False),
    Column("logprobs", LargeBinary),
    Column("versions", LargeBinary),
    Column("hash", LargeBinary, nullable=False),  # over this segment and its parent's hash
)

trajectories = Table(
    "trajectories",
    tables,
    Column("seq", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("group", Integer, ForeignKey("groups.seq"), nullable=False, index=True),
    Column("position", Integer, nullable=False),
    Column("index", Integer, nullable=False),
    Column("status", String, nullable=False),
    Column("reward", Float),  # NULL: unscored
    Column("score", Text, nullable=False),  # JSON
    Column("error", Text),  # JSON
    Column("seconds", Float, nullable=False),
    Column("protections", Text),  # JSON; NULL: nothing of the agent's ran
    Column("transcript", Text, nullable=False),  # JSON
    Column("turns", Text, nullable=False),  # JSON: [[prompt leaf, completion leaf, finish reason], …]
    Column("turn_count", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),  # referenced: prompts and completions of all turns
)

checkpoints = Table(
    "checkpoints",
    tables,
    Column("seq", Integer, primary_key=True),
    Column("run", String, ForeignKey("runs.id"), nullable=False, index=True),
    Column("step", Integer, nullable=False),
    Column("path", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("created", Float, nullable=False),
)

metrics = Table(
    "metrics",
    tables,
    Column("run", String, ForeignKey("runs.id"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Float, nullable=False),
)
