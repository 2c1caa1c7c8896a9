import { documentOf } from './api';
import { place } from './place';

/** Prints the report of the shown run instead of the page: charts on a canvas and closed folds print badly. */
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

interface Report {
  style: string;
  body: Document;
}

/** The report at an address; null if there is none. The browser prints as soon as the event is over, so this waits. */
function read(address: string): Report | null {
  const request = new XMLHttpRequest();
  request.open('GET', address, false);
  try {
    request.send();
  } catch {
    return null; // the agent is gone: the page is printed as it is
  }
  if (request.status !== 200) return null;
  // The page's policy refuses the style within a document, even in one that is only parsed.
  const [before = '', style = '', after = ''] = request.responseText.split(/<\/?style>/, 3);
  return { style, body: new DOMParser().parseFromString(before + after, 'text/html') };
}

/** Shows a document with its own style, and returns a function that restores the page. */
function show({ style: text, body: report }: Report): () => void {
  const style = new CSSStyleSheet();
  style.replaceSync(text);
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
