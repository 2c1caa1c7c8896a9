import type { Latency, Operation, Run, RunDetail } from './api';
import { el } from './dom';
import * as format from './format';

/** A run's state in a word, and how it is coloured. */
export function stateOf(r: Run): { text: string; kind: 'live' | 'good' | 'bad' | 'wait' } {
  if (r.phase === 'draining') return { text: r.result && r.result !== 'succeeded' ? `${r.result}, draining` : 'draining', kind: 'wait' };
  if (r.phase !== 'over') return { text: { starting: 'starting', warmup: 'warming up', measure: 'running' }[r.phase], kind: 'live' };
  return { text: r.result ?? 'ended', kind: r.result === 'succeeded' ? 'good' : 'bad' };
}

/** The headline latency's statistic, with the operation unless it is the transaction. */
export const latencyName = (l: Latency): string => (l.operation === 'transaction' ? l.stat : `${l.operation.replaceAll('_', ' ')} ${l.stat}`);

export const live = (r: Run): boolean => r.phase !== 'over' && r.phase !== 'draining';

/** Seconds from the start to the tool's end, or to now. */
export const lasted = (r: Run, now: number): number => Math.max(0, ((r.ended_at ?? now) - r.started_at) / 1000);

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

/** The tool's own totals; null if there are none yet. */
export function summary(r: RunDetail): HTMLElement | null {
  const s = r.summary;
  if (!s?.operations?.length) return null;
  const stats = [...new Set(s.operations.flatMap((o) => Object.keys(o.latency_seconds ?? {})))].sort(byStat);
  const cell = (text: string) => el('td', {}, text);
  const row = (o: Operation) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, o.operation.replaceAll('_', ' ')),
      cell(format.number(o.per_second)),
      cell(format.number(o.count)),
      ...stats.map((k) => cell(format.seconds(o.latency_seconds?.[k]))),
    );
  const head = ['', 'per second', 'total', ...stats].map((t) => el('th', { scope: 'col' }, t));
  const note = s.from_intervals
    ? 'The tool printed no summary: computed from its intervals.'
    : `From the tool's own summary${s.elapsed_seconds ? ` over ${format.seconds(s.elapsed_seconds)}` : ''}.`;
  return el(
    'section',
    { class: 'panel' },
    el('h2', {}, 'Summary'),
    el(
      'div',
      { class: 'wide' },
      el('table', { class: 'numbers' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...s.operations.map(row))),
    ),
    el('p', { class: 'hint' }, note, s.tpmc !== undefined && ` ${format.number(s.tpmc)} TpmC.`),
  );
}

function byStat(a: string, b: string): number {
  const rank = (s: string) => (s === 'min' ? -2 : s === 'avg' ? -1 : s === 'max' ? 1000 : Number(s.slice(1)));
  return rank(a) - rank(b);
}

/** How long each replica took to catch up after the end. */
export function drain(r: Run): HTMLElement | null {
  const replicas = Object.entries(r.drain ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  if (replicas.length === 0) return null;
  return el(
    'section',
    { class: 'panel' },
    el('h2', {}, 'Drain'),
    el('p', { class: 'hint' }, 'How long each replica took to catch up after the tool had ended.'),
    el(
      'ul',
      { class: 'plain' },
      ...replicas.map(([target, d]) =>
        el('li', {}, el('b', {}, target), d.timed_out ? ' did not catch up in time' : ` ${format.seconds(d.seconds)}`),
      ),
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
    r.reason ? el('p', { class: 'reason' }, `${r.result ?? 'ended'}: ${r.reason}`) : null,
    all.length > 0 && el('pre', {}, all.join('\n')),
    more > 0 && hint(`${format.number(more)} more; the last: ${r.last_message ?? ''}`),
    r.malformed_lines > 0 && hint(`${format.number(r.malformed_lines)} lines of the tool's output are damaged.`),
    r.faults > 0 && hint(`${format.number(r.faults)} failures to record something: see the agent's log.`),
  );
}
