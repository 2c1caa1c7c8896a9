// Forms the replica set SET of MEMBERS and, if there is one, ARBITER, and creates its users
// root and monitor. Runs in mongosh in the network of the first member at each start of the
// stack, and keeps what exists.
const fs = require('fs');
const secret = (name) => fs.readFileSync(`/secrets/${name}`, 'utf8').trim();
const { SET, MEMBERS, ARBITER } = process.env;

const connect1 = (host) => new Mongo(`mongodb://${host}:27017/?directConnection=true`).getDB('admin');

function loggedIn(admin) {
  try {
    return admin.auth('root', secret('root-password')).ok;
  } catch (err) {
    if (err.codeName !== 'AuthenticationFailed') throw err;
    return false; // there is no user yet
  }
}

// Without users, a member accepts replSetInitiate and the first user from its own address.
let admin = connect1('127.0.0.1');
if (!admin.hello().setName) {
  const members = MEMBERS.split(' ').map((name, i) => ({ _id: i, host: `${name}:27017`, priority: i === 0 ? 2 : 1 }));
  if (ARBITER) members.push({ _id: members.length, host: `${ARBITER}:27017`, arbiterOnly: true });
  admin.adminCommand({ replSetInitiate: { _id: SET, configsvr: SET === 'config' || undefined, members } });
}

const deadline = Date.now() + 60_000;
const wait = (done) => {
  while (!done()) {
    if (Date.now() > deadline) throw new Error(`no primary of ${SET} after a minute: see docker compose logs ${MEMBERS}`);
    sleep(500);
  }
};
if (!loggedIn(admin)) {
  wait(() => admin.hello().isWritablePrimary);
  admin.createUser({ user: 'root', pwd: secret('root-password'), roles: ['root'] });
  print(`made the user root of ${SET}`);
  loggedIn(admin);
}

// Only the current primary accepts writes.
wait(() => admin.hello().primary);
admin = connect1(admin.hello().primary.split(':')[0]);
loggedIn(admin);
if (!admin.getUser('monitor')) {
  admin.createUser({
    user: 'monitor', pwd: secret('monitor-password'),
    roles: [{ role: 'clusterMonitor', db: 'admin' }, { role: 'read', db: 'local' }],
  });
  print(`made the user monitor of ${SET}`);
}
