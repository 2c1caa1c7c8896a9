// The address has the state of the view, so it can be sent to someone: #/runs/ID?from=10&to=20.

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The view that the address selects. */
export function place(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

/** The address of a view; parameters that are empty are left out. */
export function address(path: string[], query: Record<string, string> = {}): string {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== ''));
  const text = q.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

/** Changes parameters of the current view without a step in the browser's history; empty ones are removed. */
export function remember(changes: Record<string, string>): void {
  const { path, query } = place();
  const next = address(path, { ...Object.fromEntries(query), ...changes });
  if (next !== location.hash) history.replaceState(null, '', next);
}
