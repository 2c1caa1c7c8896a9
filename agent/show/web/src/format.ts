import type { Chart } from './types';

/** A value's unit; all units are base units. */
export type Unit = Chart['unit'];

const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** A number in human-readable form; a dash if it is unknown. */
export function number(v: number | null | undefined): string {
  if (v == null || !Number.isFinite(v)) return '–';
  const a = Math.abs(v);
  if (a >= 100 || Number.isInteger(v)) return plain.format(v);
  return a >= 10 ? v.toFixed(1) : a >= 0.01 ? v.toFixed(2) : v.toPrecision(2);
}

/** Seconds in the unit that suits their size. */
export function seconds(v: number | null | undefined): string {
  if (v == null || !Number.isFinite(v)) return '–';
  if (v === 0) return '0 s';
  const a = Math.abs(v);
  if (a < 1e-3) return `${trimmed(v * 1e6)} µs`;
  if (a < 1) return `${trimmed(v * 1e3)} ms`;
  return `${trimmed(v)} s`;
}

function trimmed(v: number): string {
  const a = Math.abs(v);
  return a >= 100 ? plain.format(v) : String(Number(v.toFixed(a >= 10 ? 1 : 2)));
}

/** A share in percent. Less than 100 % never reads 100 %, as in reports (table.Share). */
export function share(v: number | null | undefined): string {
  if (v == null || !Number.isFinite(v)) return '–';
  const p = v * 100;
  const rest = 100 - p;
  if (rest >= 1e-4 && rest < 1) return `${p.toFixed(Math.ceil(-Math.log10(rest) - 1e-9))} %`;
  return `${p === 0 || p >= 10 ? p.toFixed(0) : p >= 0.1 ? p.toFixed(1) : '<0.1'} %`;
}

/** Bytes in binary multiples. */
export function bytes(v: number | null | undefined): string {
  if (v == null || !Number.isFinite(v)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log2(Math.abs(v) || 1) / 10)));
  return `${trimmed(v / 1024 ** power)} ${units[power]}`;
}

export function value(unit: Unit, v: number | null | undefined): string {
  switch (unit) {
    case 'seconds':
      return seconds(v);
    case 'ratio':
      return share(v);
    case 'bytes':
      return bytes(v);
    default:
      return number(v);
  }
}

/** A value beside an axis: short. */
export function tick(unit: Unit, v: number): string {
  switch (unit) {
    case 'seconds':
      return seconds(v);
    case 'bytes':
      return bytes(v);
    case 'ratio':
      return `${Number((v * 100).toPrecision(3))} %`;
    default:
      return short.format(v);
  }
}

/** A server's setting; a large number of bytes also in MiB or GiB. */
export function setting(text: string): string {
  const mebibyte = 1 << 20;
  const n = /^[0-9]+$/.test(text) ? Number(text) : 0;
  if (n === 0 || n % mebibyte !== 0) return /^[0-9]+\.[0-9]+$/.test(text) ? String(Number(text)) : text || '–';
  const m = n / mebibyte;
  return m % 1024 === 0 ? `${text} (${m / 1024} GiB)` : `${text} (${m} MiB)`;
}

/** Time since the start of a run: 1:05, 2:00:00. */
export function elapsed(s: number): string {
  const sign = s < 0 ? '−' : '';
  const whole = Math.floor(Math.abs(s) + 1e-6);
  const h = Math.floor(whole / 3600);
  const m = Math.floor((whole % 3600) / 60);
  const two = (n: number) => String(n).padStart(2, '0');
  const rest = Math.round((Math.abs(s) - whole) * 10) / 10;
  const tail = two(whole % 60) + (rest >= 0.1 && rest < 1 ? rest.toFixed(1).slice(1) : '');
  return sign + (h > 0 ? `${h}:${two(m)}:${tail}` : `${m}:${tail}`);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short', hour12: false });

export const timeOfDay = (ms: number): string => clock.format(ms);
export const dateTime = (ms: number): string => date.format(ms);

/** A statistic's name for people: a percentile of several generators is the worst generator's. */
export const stat = (name: string): string => (name.endsWith('_worst') ? `worst generator’s ${name.slice(0, -'_worst'.length)}` : name);
