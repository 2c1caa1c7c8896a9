import { type Drain, ids, type Latency, type Run, type RunDetail } from './api';
import { el } from './dom';
import * as format from './format';
import type { Table } from './table';

/** The share of failed transactions above which it is part of the result. */
const manyFailures = 0.01;

/** A run's state in a word, and how it is coloured. */
export function stateOf(r: Run): { text: string; kind: 'live' | 'good' | 'bad' | 'wait' } {
  if (r.phase === 'draining') return { text: r.result && r.result !== 'succeeded' ? `${r.result}, draining` : 'draining', kind: 'wait' };
  if (r.phase !== 'over') return { text: { starting: 'starting', warmup: 'warming up', measure: 'running' }[r.phase], kind: 'live' };
  const failed = (r.failed_share ?? 0) >= manyFailures ? `, ${format.share(r.failed_share)} failed` : '';
  return { text: (r.result ?? 'ended') + failed, kind: r.result !== 'succeeded' ? 'bad' : failed ? 'wait' : 'good' };
}

/** The headline latency's operation and statistic. */
export const latencyName = (l: Latency): string => `${l.operation.replaceAll('_', ' ')} ${format.stat(l.stat)}`;

export const failed = (r: Run): boolean => r.result !== undefined && r.result !== 'succeeded';

export const live = (r: Run): boolean => r.phase !== 'over' && r.phase !== 'draining';

/** Whole seconds from the start: to the tool's end, rounded, or to now, rounded down. */
export const lasted = (r: Run, now: number): number => {
  const seconds = Math.max(0, ((r.ended_at ?? now) - r.started_at) / 1000);
  return r.ended_at === undefined ? Math.floor(seconds) : Math.round(seconds);
};

export const badge = (r: Run): HTMLElement => {
  const s = stateOf(r);
  return el('span', { class: `badge ${s.kind}` }, s.text);
};

/** The run's facts and labels as a list of terms. */
export function parameters(r: RunDetail): HTMLElement {
  const list = el('dl', { class: 'facts' });
  const add = (term: string, text: string | number | undefined | null) => {
    if (text !== undefined && text !== null && text !== '') list.append(el('div', {}, el('dt', {}, term), el('dd', {}, String(text))));
  };
  for (const f of r.facts) add(f.name.replaceAll('_', ' '), f.value);
  add('started', format.dateTime(r.started_at));
  add('planned', r.duration_seconds ? format.elapsed(r.duration_seconds) : undefined);
  for (const [k, v] of Object.entries(r.labels ?? {})) add(k, v);
  return list;
}

/** A notice about the run's servers; null without one. */
export const notice = (r: Run): HTMLElement | null => (r.notice ? el('p', { class: 'notice' }, `Servers: ${r.notice}.`) : null);

/** A drain in words, as in rundir.Drain: it ended between two samples. */
export function drainText(d: Drain): string {
  if (d.seconds === undefined) return d.timed_out ? 'not caught up' : '–';
  const resolution = d.resolution_seconds ?? 0;
  if (resolution < 0.05) return d.seconds === 0 ? '0 s' : `${d.seconds.toFixed(1)} s`;
  if (d.seconds === 0) return `under ${resolution.toFixed(1)} s`;
  return `${Math.max(0, d.seconds - resolution).toFixed(1)} to ${d.seconds.toFixed(1)} s`;
}

/** The generators of a group with their outcomes; null for other runs. */
export function generators(r: Run): HTMLElement | null {
  const all = r.generators ?? [];
  if (all.length === 0) return null;
  const started = all.flatMap((g) => (g.start_seconds === undefined ? [] : [g.start_seconds]));
  const first = Math.min(...started);
  const offset = all.some((g) => g.clock_offset_seconds !== undefined);
  const state = (g: (typeof all)[number]): HTMLElement => {
    const silent = g.state === 'silent' && g.result === undefined;
    const text = g.absent ? 'never started' : (g.result ?? (silent ? 'silent' : g.start_seconds === undefined ? 'not started' : 'running'));
    const bad = g.absent || silent || (g.result !== undefined && g.result !== 'succeeded');
    return el('span', { class: `badge ${bad ? 'bad' : g.result ? 'good' : g.start_seconds === undefined ? 'wait' : 'live'}` }, text);
  };
  const going = all.some((g) => g.throughput !== undefined);
  const named = all.some((g) => g.host);
  const head = [
    'Generator',
    ...(named ? ['Machine'] : []),
    'State',
    ...(going ? ['Transactions/s'] : []),
    ...(started.length > 0 ? ['Started'] : []),
    ...(offset ? ['Clock'] : []),
  ];
  const milliseconds = (s: number | undefined) => (s === undefined ? '–' : `${s >= 0 ? '+' : '−'}${Math.abs(s * 1000).toFixed(1)} ms`);
  return el(
    'section',
    { class: 'panel' },
    el('h2', {}, 'Generators'),
    el(
      'div',
      { class: 'wide' },
      el(
        'table',
        {},
        el('thead', {}, el('tr', {}, ...head.map((t) => el('th', { scope: 'col' }, t)))),
        el(
          'tbody',
          {},
          ...all.map((g) =>
            el(
              'tr',
              {},
              el('th', { scope: 'row' }, g.run ? el('a', { href: `#/runs/${encodeURIComponent(g.run)}` }, g.run) : (g.log ?? '')),
              named && el('td', {}, g.host ?? ''),
              el('td', {}, state(g), g.reason ? ` ${g.reason}` : ''),
              going && el('td', {}, format.number(g.throughput)),
              started.length > 0 && el('td', {}, milliseconds(g.start_seconds === undefined ? undefined : g.start_seconds - first)),
              offset && el('td', {}, milliseconds(g.clock_offset_seconds)),
            ),
          ),
        ),
      ),
    ),
    el(
      'p',
      { class: 'hint' },
      'Percentiles of the group are the worst generator’s. A second without a generator that still runs has no values; a silent one has not reported for more than two intervals.',
    ),
  );
}

/** The tool's error messages, and what could not be read or recorded. */
export function messages(r: RunDetail): HTMLElement | null {
  const all = [...(r.messages ?? [])];
  const more = r.message_count - all.length;
  if (all.length === 0 && !r.reason && !r.faults && !r.malformed_lines) return null;
  const hint = (text: string) => el('p', { class: 'hint' }, text);
  return el(
    'section',
    { class: 'panel' },
    el('h2', {}, 'Messages'),
    r.reason ? el('p', {}, `${r.result ?? 'ended'}: ${r.reason}`) : null,
    all.length > 0 && el('pre', {}, all.join('\n')),
    more > 0 && hint(`${format.number(more)} more.`),
    r.last_message && r.last_message !== all[all.length - 1] && hint(`The last one: ${r.last_message}`),
    r.malformed_lines > 0 && hint(`${format.number(r.malformed_lines)} lines of the tool's output are damaged.`),
    r.faults > 0 && hint(`${format.number(r.faults)} failures to record something: see the agent's log.`),
  );
}

/** The operation and the statistic of a run's headline latency among its intervals, as the agent chose it; without one, the first percentile. */
export function headlineName(r: Run, intervals: Table): string {
  const all = intervals.of(ids.latency).map((s) => `${s.name[1]} ${s.name[2]}`);
  const own = r.latency && `${r.latency.operation} ${r.latency.stat}`;
  return (own !== undefined && all.includes(own) ? own : all.find((n) => / p\d/.test(n))) ?? all[0] ?? '';
}
