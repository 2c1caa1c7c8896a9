import { documentOf } from './api';
import { place } from './place';

/** Prints the report of the run that is shown in place of the page: charts on a canvas and closed folds print badly. */
export function printReports(): void {
  let restore: (() => void) | null = null;
  window.addEventListener('beforeprint', () => {
    const [kind, id] = place().path;
    const report = kind === 'runs' && id !== undefined ? read(documentOf(id, 'report')) : null;
    if (report) restore = show(report);
  });
  window.addEventListener('afterprint', () => {
    restore?.();
    restore = null;
  });
}

/** The document at an address; null if there is none. The browser prints as soon as the event is over, so this waits. */
function read(address: string): Document | null {
  const request = new XMLHttpRequest();
  request.open('GET', address, false);
  try {
    request.send();
  } catch {
    return null; // the agent is gone: the page is printed as it is
  }
  return request.status === 200 ? new DOMParser().parseFromString(request.responseText, 'text/html') : null;
}

/** Shows a document with its own style, and returns what brings the page back. */
function show(report: Document): () => void {
  const style = new CSSStyleSheet();
  style.replaceSync(report.querySelector('style')?.textContent ?? '');
  const links = [...document.querySelectorAll<HTMLLinkElement>('link[rel=stylesheet]')];
  const own = [...document.body.childNodes];
  for (const link of links) link.disabled = true;
  document.adoptedStyleSheets = [style];
  document.body.replaceChildren(...[...report.body.childNodes].map((node) => document.importNode(node, true)));
  return () => {
    document.body.replaceChildren(...own);
    document.adoptedStyleSheets = [];
    for (const link of links) link.disabled = false;
  };
}
