// Everything that tools, labels and markers say goes into the page as text.

type Child = Node | string | null | undefined | false;

/** An element with attributes and children; strings become text. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  for (const c of children) if (c) e.append(c);
  return e;
}

/** Changes a text only where it differs, so that screen readers stay quiet. */
export function setText(e: Element, text: string): void {
  if (e.textContent !== text) e.textContent = text;
}
