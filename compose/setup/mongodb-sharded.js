// Adds the shards to the cluster, and creates the user of the benchmark and the collection of
// YCSB, spread over the shards by the hash of its key. Runs in mongosh at each start of the
// stack, and keeps what exists. The users root and monitor are those of the config servers.
const fs = require('fs');
const secret = (name) => fs.readFileSync(`/secrets/${name}`, 'utf8').trim();

const admin = new Mongo('mongodb://mongos:27017/').getDB('admin');
admin.auth('root', secret('root-password'));

// A shard with an arbiter has no default of its own that a cluster would accept.
admin.adminCommand({ setDefaultRWConcern: 1, defaultWriteConcern: { w: 'majority' } });
const known = admin.adminCommand({ listShards: 1 }).shards.map((shard) => shard._id);
for (const shard of ['shard1', 'shard2', 'shard3']) {
  if (known.includes(shard)) continue;
  admin.adminCommand({ addShard: `${shard}/${shard}a:27017,${shard}b:27017` });
  print(`added ${shard}`);
}
if (!admin.getUser('benchmark')) {
  admin.createUser({ user: 'benchmark', pwd: secret('benchmark-password'), roles: [{ role: 'readWrite', db: 'ycsb' }] });
  print('made the user benchmark');
}
if (!admin.getSiblingDB('config').collections.findOne({ _id: 'ycsb.usertable' })) {
  admin.adminCommand({ shardCollection: 'ycsb.usertable', key: { _id: 'hashed' } });
  print('sharded ycsb.usertable');
}
