// A benchwatch of this clone on a data directory of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const binary = process.env.BENCHWATCH;
const port = Number(process.env.PORT ?? 29160);

export class Agent {
  url = `http://127.0.0.1:${port}/`;
  folder = mkdtempSync(join(tmpdir(), 'benchwatch-page.'));
  #agent = null;
  #runs = [];

  async start() {
    writeFileSync(join(this.folder, 'token'), 'secret-token');
    // A server that does not answer, and markers and alerts with a token.
    const config = `data_dir: ${this.folder}\nwebhook_token_file: ${this.folder}/token\ntargets:\n  - {name: gone, engine: mysql, address: "127.0.0.1:1", user: nobody}\n`;
    writeFileSync(join(this.folder, 'benchwatch.yml'), config);
    this.#agent = this.#spawn('agent.log', ['agent', `--config.file=${this.folder}/benchwatch.yml`, `--web.listen-address=127.0.0.1:${port}`]);
    for (;;) {
      if (this.#agent.exitCode !== null) throw new Error(`the agent ended, see ${this.folder}/agent.log`);
      try {
        if ((await fetch(`${this.url}-/ready`)).ok) return;
      } catch {
        await new Promise((done) => setTimeout(done, 50));
      }
    }
  }

  async stop() {
    if (this.#agent?.exitCode === null) {
      this.#agent.kill('SIGTERM');
      await once(this.#agent, 'exit');
    }
  }

  /** Stops all that was started. */
  async end() {
    for (const run of this.#runs) {
      if (run.exitCode !== null) continue;
      run.kill('SIGTERM');
      await once(run, 'exit');
    }
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs sysbench's CPU test, which needs no server: 20 events a second. */
  run(title, seconds, ...flags) {
    const tool = ['sysbench', 'cpu', '--rate=20', '--threads=2', `--time=${seconds}`, '--report-interval=1', 'run'];
    const run = this.#spawn('run.log', ['run', `--data-dir=${this.folder}`, `--title=${title}`, ...flags, '--', ...tool]);
    this.#runs.push(run);
    return run;
  }

  /** Runs one of the generators of a group. */
  generator(group, number, generators, seconds) {
    const tool = ['sysbench', 'cpu', `--rate=${20 * number}`, '--threads=2', `--time=${seconds}`, '--report-interval=1', 'run'];
    const flags = [`--group=${group}`, `--generators=${generators}`, `--generator=${number}`, '--linger=0s'];
    const run = this.#spawn('run.log', ['run', `--data-dir=${this.folder}`, ...flags, '--', ...tool]);
    this.#runs.push(run);
    return run;
  }

  /** What run.json has. */
  meta(id) {
    return JSON.parse(readFileSync(join(this.folder, 'runs', id, 'run.json'), 'utf8'));
  }

  /** Posts JSON with the token and returns the status. */
  async post(path, body) {
    const headers = { Authorization: 'Bearer secret-token', 'Content-Type': 'application/json' };
    return (await fetch(this.url + path, { method: 'POST', headers, body: JSON.stringify(body) })).status;
  }

  async mark(text) {
    const mark = this.#spawn('mark.log', ['mark', `--data-dir=${this.folder}`, text]);
    const [code] = await once(mark, 'exit');
    if (code !== 0) throw new Error(`mark: exit status ${code}`);
  }

  /** What server n1 executed in a run that was laid down: texts with their seconds, 1000 executions each. */
  executed(id, statements) {
    const line = {
      target: 'n1',
      engine: 'mysql',
      from: '2026-11-20T01:00:01Z',
      to: '2026-11-20T01:00:20Z',
      questions: 1000 * Object.keys(statements).length,
      statements: Object.entries(statements).map(([text, seconds]) => ({
        digest: text,
        text,
        executions: 1000,
        seconds,
        rows_examined: 5000,
        rows_sent: 1000,
      })),
    };
    writeFileSync(join(this.folder, 'runs', id, 'statements.jsonl'), `${JSON.stringify(line)}\n`);
  }

  /** Lays down the recorded run of a Galera cluster that every binary has, and returns its id. */
  recorded() {
    const from = new URL('../../agent/app/replay/example', import.meta.url).pathname;
    const { id } = JSON.parse(readFileSync(join(from, 'run.json'), 'utf8'));
    cpSync(from, join(this.folder, 'runs', id), { recursive: true });
    return id;
  }

  /** Lays down an ended run as the agent would have left it: its tool's output, two servers' records, the machine's CPU; seconds without a throughput are missing. */
  ended(id, seconds, throughput, more = {}) {
    const dir = join(this.folder, 'runs', id);
    mkdirSync(dir, { recursive: true });
    const start = Date.UTC(2026, 10, 20, 1, 0, 0);
    const at = (s) => new Date(start + s * 1000).toISOString();
    let lines =
      'sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n\nRunning the test with following options:\nNumber of threads: 8\n\nThreads started!\n\n';
    let status = '{"target":"n1","engine":"mysql","interval":1,"columns":["db_queries_total","db_threads_running"]}\n';
    let host = '{"target":"test","engine":"procfs","interval":1,"columns":["host_cpu_cores","host_cpu_busy_ratio"]}\n';
    for (let s = 1; s <= seconds; s++) {
      const value = throughput(s);
      if (value === null) continue; // nothing was recorded
      const tps = value.toFixed(2);
      lines += `[ ${s}s ] thds: 8 tps: ${tps} qps: ${tps} (r/w/o: ${tps}/0.00/0.00) lat (ms,95%): 1.04 err/s: 0.00 reconn/s: 0.00\n`;
      status += `["n1",${start / 1000 + s},0,0.001,0.002,"",${s * 500},9]\n`;
      host += `["test",${start / 1000 + s},0,0.001,0.002,"",4,${s % 2 ? 0.25 : 0.75}]\n`;
    }
    const settings = (s, target, appliers) =>
      `{"at":"${at(s)}","target":"${target}","engine":"mysql","cluster":"c","version":"10.11","settings":{"innodb_buffer_pool_size":"1073741824","wsrep_slave_threads":"${appliers}"}}\n`;
    writeFileSync(join(dir, 'settings.jsonl'), settings(1, 'n1', 1) + settings(1, 'n2', '<b>2</b>') + settings(60, 'n1', 8));
    writeFileSync(join(dir, 'host.jsonl'), host);
    writeFileSync(join(dir, 'stdout.log'), lines);
    writeFileSync(join(dir, 'status.jsonl'), status);
    const meta = {
      id,
      title: id,
      tool: 'sysbench',
      workload: 'oltp_read_only',
      threads: 8,
      generator: 'test',
      servers: {
        source: 'matched',
        targets: [{ target: 'n1', cluster: 'c', engine: 'mysql' }],
        machines: [{ host: 'test', nodename: 'test', roles: ['generator'] }],
      },
      started_at: at(0),
      clock_started_at: at(0),
      ended_at: at(seconds),
      closed_at: at(seconds),
      exit_code: 0,
      result: 'succeeded',
      ...more,
    };
    writeFileSync(join(dir, 'run.json'), JSON.stringify(meta));
  }

  #spawn(log, args) {
    const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, BENCHWATCH_DATA_DIR: '' } });
    for (const out of [child.stdout, child.stderr]) out.on('data', (data) => appendFileSync(join(this.folder, log), data));
    return child;
  }
}
