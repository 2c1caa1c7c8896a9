// Forms a replica set of mongo1, mongo2 and mongo3, and creates its users. Runs in
// mongosh at each start of the stack, and keeps what exists.
const fs = require('fs');
const secret = (name) => fs.readFileSync(`/secrets/${name}`, 'utf8').trim();

function connect1() {
  const admin = new Mongo('mongodb://mongo1:27017/?directConnection=true').getDB('admin');
  admin.auth('root', secret('root-password'));
  return admin;
}

let admin = connect1();
try {
  admin.adminCommand({ replSetGetStatus: 1 });
} catch (err) {
  if (err.codeName !== 'NotYetInitialized') throw err;
  admin.adminCommand({
    replSetInitiate: {
      _id: 'rs0',
      members: ['mongo1', 'mongo2', 'mongo3'].map((name, i) => ({
        _id: i, host: `${name}:27017`, priority: i === 0 ? 2 : 1,
      })),
    },
  });
}

// Only the current primary accepts writes.
const deadline = Date.now() + 60_000;
let primary;
while (!(primary = admin.hello().primary)) {
  if (Date.now() > deadline) throw new Error('no primary after a minute: see docker compose logs mongo1');
  sleep(500);
}
admin = new Mongo(`mongodb://${primary}/?directConnection=true`).getDB('admin');
admin.auth('root', secret('root-password'));

const users = {
  monitor: { pwd: secret('monitor-password'), roles: [{ role: 'clusterMonitor', db: 'admin' }, { role: 'read', db: 'local' }] },
  benchmark: { pwd: secret('benchmark-password'), roles: [{ role: 'readWrite', db: 'ycsb' }] },
};
for (const [name, user] of Object.entries(users)) {
  if (admin.getUser(name)) continue;
  admin.createUser({ user: name, ...user });
  print(`made the user ${name}`);
}
