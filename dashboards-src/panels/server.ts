// Panels about database servers of any kind, from the agent's samples. `of`
// contains label matchers that restrict them to one kind of server.

import { commitRate, perServer, server, serverGauge, serverRate, servers } from '../metrics';
import { sessionClasses } from '../palette';
import { type AnyPanel, graph, set, states, timeline, unit } from '../panel';
import { agent } from '../query';

const noServer = 'No server of the selected run is sampled: add `targets` to benchwatch.yml';

export function up(span: number, of = ''): AnyPanel {
  return timeline({
    title: 'Servers',
    description:
      'Whether each selected server answered within the tick. A stopped or hanging server is down. DatabaseDown fires after 5 s. From benchwatch_db_up.',
    unit: unit.none,
    noData: 'No server',
    span,
    queries: [agent(serverGauge('benchwatch_db_up', of), server)],
    mappings: states({ '0': { text: 'down', color: 'red' }, '1': { text: 'up', color: 'green' } }),
  });
}

export function queries(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Queries by server',
    description:
      'Statements per second that clients sent to each server (MySQL: Questions, MongoDB: commands that read or write), without statements that replication applies. Shows the distribution of the load. From benchwatch_db_queries_total.',
    unit: unit.perSecond,
    noData: noServer,
    span,
    queries: [agent(serverRate('benchwatch_db_queries_total', of), server)],
  });
}

export function threads(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Connections and running threads',
    description:
      'Client connections (dashed) and clients executing a statement at the time of the sample (solid), by server, including the agent. If almost all connected clients are running, the server is the bottleneck. From benchwatch_db_connections and benchwatch_db_threads_running.',
    unit: unit.count,
    noData: noServer,
    span,
    queries: [
      agent(serverGauge('benchwatch_db_threads_running', of), `${server} running`),
      agent(serverGauge('benchwatch_db_connections', of), `${server} connected`),
    ],
    overrides: [{ series: /.* connected$/, set: [set.dashed(), set.noFill()] }],
  });
}

export function sessions(span: number, of = ''): AnyPanel {
  const sampled = `avg_over_time(benchwatch_db_active_sessions{${servers}${of && `, ${of}`}}[$__rate_interval])`;
  return graph({
    title: 'Average active sessions by wait class',
    description:
      'Client sessions that execute a statement, on average of the samples, by what they wait for, all selected servers. running is not known to wait. The height is at most the number of clients; what is missing to that is time in the tool and on the network. A large class is what limits the load. The session of the agent is left out. MySQL and MariaDB with the right PROCESS, PostgreSQL with pg_monitor, MongoDB. From benchwatch_db_active_sessions.',
    unit: unit.count,
    noData: 'No server of the selected run shows its sessions: a right is missing, such as PROCESS (MySQL) or pg_monitor',
    span,
    stacked: true,
    queries: [agent(`sum by (class) (${perServer(sampled, 'class', 'event')})`, '{{class}}')],
    overrides: sessionClasses.map(([name, color]) => ({ series: new RegExp(`^${name}$`), set: [set.color(color)] })),
  });
}

export function operations(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Statements by kind',
    description:
      'Statements per second by kind, all selected servers. Servers that apply replicated rows also count their appliers. From benchwatch_db_operations_total.',
    unit: unit.perSecond,
    noData: noServer,
    span,
    queries: [agent(`topk(12, sum by (op) (${serverRate('benchwatch_db_operations_total', of, 'op')}) > 0)`, '{{op}}')],
  });
}

export function bytes(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Bytes to and from clients',
    description:
      'Bytes per second that the servers received from and sent to clients. Each sample of the agent contributes about 20 kB. From benchwatch_db_bytes_total.',
    unit: unit.bytesPerSecond,
    noData: noServer,
    span,
    queries: [agent(serverRate('benchwatch_db_bytes_total', of, 'direction'), `${server} {{direction}}`)],
  });
}

export function commits(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Commits and rollbacks',
    description:
      'Transactions committed, by COMMIT or autocommit, and ROLLBACK statements per second, by server. Deadlocks and certification failures are not included. Asynchronous replicas count the transactions that they apply. From benchwatch_galera_local_commits_total, or benchwatch_db_commits_total and benchwatch_db_autocommits_total, and benchwatch_db_rollbacks_total.',
    unit: unit.perSecond,
    noData: noServer,
    span,
    queries: [agent(commitRate(of), `${server} commits`), agent(serverRate('benchwatch_db_rollbacks_total', of), `${server} rollbacks`)],
    overrides: [{ series: /.* rollbacks$/, set: [set.dashed(), set.noFill()] }],
  });
}

export function lockWaits(span: number, of = ''): AnyPanel {
  return graph({
    title: 'Clients waiting for row locks',
    description:
      'Number of clients waiting for a row lock, on average (seconds waited per second). Near zero is good. DatabaseLockWaits fires over 25 % of the running threads. From benchwatch_db_lock_wait_seconds_total.',
    unit: unit.count,
    noData: 'These servers do not count lock waits',
    span,
    queries: [agent(serverRate('benchwatch_db_lock_wait_seconds_total', of), server)],
  });
}
