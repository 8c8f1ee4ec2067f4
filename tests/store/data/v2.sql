BEGIN TRANSACTION;
CREATE TABLE checkpoints (
	seq INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	step INTEGER NOT NULL, 
	path VARCHAR NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	created FLOAT NOT NULL, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(run) REFERENCES runs (id)
);
INSERT INTO "checkpoints" VALUES(1,'old-cf1c5c7e',1,'checkpoints/1','0000000000000000000000000000000000000000000000000000000000000000',1.79614425679346823689e+09);
CREATE TABLE groups (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	task INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	size INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	trained_step INTEGER, 
	PRIMARY KEY (seq), 
	UNIQUE (id), 
	FOREIGN KEY(run) REFERENCES runs (id), 
	FOREIGN KEY(task) REFERENCES tasks (id)
);
INSERT INTO "groups" VALUES(1,'a','old-cf1c5c7e',1,0,3,'3ff1f4b21a570db4f5b85b66ec836529',1);
INSERT INTO "groups" VALUES(2,'b','old-cf1c5c7e',2,0,3,'363153a44e8bc7a6d073b36556b412c0',NULL);
CREATE TABLE leases (
	"group" INTEGER NOT NULL, 
	consumer VARCHAR NOT NULL, 
	until FLOAT NOT NULL, 
	PRIMARY KEY ("group"), 
	FOREIGN KEY("group") REFERENCES groups (seq)
);
CREATE TABLE meta (
	name VARCHAR NOT NULL, 
	value VARCHAR NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('schema_version','2');
CREATE TABLE metrics (
	run VARCHAR NOT NULL, 
	step INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	value FLOAT NOT NULL, 
	PRIMARY KEY (run, step, name), 
	FOREIGN KEY(run) REFERENCES runs (id)
);
CREATE TABLE nodes (
	"group" INTEGER NOT NULL, 
	node INTEGER NOT NULL, 
	parent INTEGER NOT NULL, 
	is_sampled INTEGER NOT NULL, 
	count INTEGER NOT NULL, 
	ids BLOB NOT NULL, 
	logprobs BLOB, 
	versions BLOB, 
	hash BLOB NOT NULL, 
	PRIMARY KEY ("group", node), 
	FOREIGN KEY("group") REFERENCES groups (seq)
);
INSERT INTO "nodes" VALUES(1,0,-1,0,40,X'42000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F2021222324252627',NULL,NULL,X'7A0CD0E73C209F14F766C897484C1504');
INSERT INTO "nodes" VALUES(1,1,0,1,6,X'42C5D71484F8CF',X'6668116BBF3D7154BFBEC177BF3F52B7BEDF4364BF73AF5FBE',X'3D06000000000000000000000000000000',X'1DAF4E73B7174C583C0C70C15D1169DC');
INSERT INTO "nodes" VALUES(1,2,0,1,6,X'4247904730804B',X'66AACB9EBE41D63ABF441A66BF92192FBFB1BCF1BE6F3CCEBD',X'3D06000000000000000000000000000000',X'C0A9336271850131F4A6949FCFC72F43');
INSERT INTO "nodes" VALUES(1,3,0,1,6,X'42DEA168F4E285',X'66E2187FBD84206BBF9D7E6ABF5205BFBD381057BF2BD335BF',X'3D06000000000000000000000000000000',X'29C3DC219695DAF091C95B2A0E679FAF');
INSERT INTO "nodes" VALUES(2,0,-1,0,40,X'42000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F2021222324252627',NULL,NULL,X'7A0CD0E73C209F14F766C897484C1504');
INSERT INTO "nodes" VALUES(2,1,0,1,6,X'424420823CFDE6',X'6621CAF1BEED5CC2BE65FE56BE59C8F9BE6DB064BF0595C7BE',X'3D06000000000000000000000000000000',X'1842EE8600457F46D389B0A1485B2FDB');
INSERT INTO "nodes" VALUES(2,2,0,1,6,X'4201E4887534A2',X'66D897FABCD773D0BC029A0ABF146C70BF342DC3BE3BCC5DBE',X'3D06000000000000000000000000000000',X'03EA8CA2E4BBAEFB165296E9C24EEB56');
INSERT INTO "nodes" VALUES(2,3,0,1,6,X'42D80E71E0FD77',X'66A5FFB0BEF2452DBF79CD42BF4BC673BF8A2F6DBF8915D5BE',X'3D06000000000000000000000000000000',X'16DE0F18E6C41221D8899A96925F20D5');
CREATE TABLE runs (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	status VARCHAR NOT NULL, 
	created FLOAT NOT NULL, 
	parent VARCHAR, 
	config TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
INSERT INTO "runs" VALUES(1,'old-cf1c5c7e','old','rl','running',1.79614425677402830125e+09,NULL,'{}');
CREATE TABLE tasks (
	id INTEGER NOT NULL, 
	hash VARCHAR NOT NULL, 
	env VARCHAR NOT NULL, 
	split VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (hash)
);
INSERT INTO "tasks" VALUES(1,'764c2632e83f5d211e3811b8ce06e1fd','env','train','{"id":"task-0","env":"env","split":"train","seed":0,"messages":[{"role":"user","content":"predict f(0)"}],"facts":{"expected":"0"},"difficulty":0.5}');
INSERT INTO "tasks" VALUES(2,'80959ec676b79eb0599c42bc8a2f056b','env','train','{"id":"task-1","env":"env","split":"train","seed":1,"messages":[{"role":"user","content":"predict f(1)"}],"facts":{"expected":"1"},"difficulty":0.5}');
CREATE TABLE trajectories (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	"group" INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	"index" INTEGER NOT NULL, 
	status VARCHAR NOT NULL, 
	reward FLOAT, 
	score TEXT NOT NULL, 
	error TEXT, 
	seconds FLOAT NOT NULL, 
	transcript TEXT NOT NULL, 
	turns TEXT NOT NULL, 
	turn_count INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id), 
	FOREIGN KEY("group") REFERENCES groups (seq)
);
INSERT INTO "trajectories" VALUES(1,'a-0',1,0,0,'finished',0.0,'{"value":0.0,"components":{"exact":0.0},"evidence":"index 0"}',NULL,0.0,'[{"role":"user","content":"predict f(0)"},{"role":"assistant","content":"answer 0"}]','[[0,1,"stop"]]',1,46);
INSERT INTO "trajectories" VALUES(2,'a-1',1,1,1,'finished',1.0,'{"value":1.0,"components":{"exact":1.0},"evidence":"index 1"}',NULL,0.0,'[{"role":"user","content":"predict f(0)"},{"role":"assistant","content":"answer 1"}]','[[0,2,"stop"]]',1,46);
INSERT INTO "trajectories" VALUES(3,'a-2',1,2,2,'finished',0.0,'{"value":0.0,"components":{"exact":0.0},"evidence":"index 2"}',NULL,0.0,'[{"role":"user","content":"predict f(0)"},{"role":"assistant","content":"answer 2"}]','[[0,3,"stop"]]',1,46);
INSERT INTO "trajectories" VALUES(4,'b-0',2,0,0,'finished',0.0,'{"value":0.0,"components":{"exact":0.0},"evidence":"index 0"}',NULL,0.0,'[{"role":"user","content":"predict f(1)"},{"role":"assistant","content":"answer 0"}]','[[0,1,"stop"]]',1,46);
INSERT INTO "trajectories" VALUES(5,'b-1',2,1,1,'finished',1.0,'{"value":1.0,"components":{"exact":1.0},"evidence":"index 1"}',NULL,0.0,'[{"role":"user","content":"predict f(1)"},{"role":"assistant","content":"answer 1"}]','[[0,2,"stop"]]',1,46);
INSERT INTO "trajectories" VALUES(6,'b-2',2,2,2,'finished',0.0,'{"value":0.0,"components":{"exact":0.0},"evidence":"index 2"}',NULL,0.0,'[{"role":"user","content":"predict f(1)"},{"role":"assistant","content":"answer 2"}]','[[0,3,"stop"]]',1,46);
CREATE INDEX ix_runs_name ON runs (name);
CREATE INDEX ix_tasks_env ON tasks (env);
CREATE INDEX groups_of_run ON groups (run, step);
CREATE INDEX ix_checkpoints_run ON checkpoints (run);
CREATE INDEX ix_leases_consumer ON leases (consumer);
CREATE INDEX ix_trajectories_group ON trajectories ("group");
COMMIT;
