/** Colours that are drawn on a canvas, from page.css and the palette that it imports. */
export interface Theme {
  back: string;
  text: string;
  grid: string;
  marker: string;
  alert: string;
  alertArea: string;
  before: string;
  warmup: string;
  drain: string;
  series: string[];
  /** The colour that a measure has in every chart; empty: it has none. */
  own(measure: string): string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    back: of('panel'),
    text: of('muted'),
    grid: of('grid'),
    marker: of('marker'),
    alert: of('bad'),
    alertArea: of('alert-area'),
    before: of('phase-before'),
    warmup: of('phase-warmup'),
    drain: of('phase-drain'),
    series: of('series').split(/\s+/),
    own: (measure) => of(`m-${measure}`),
  };
}

export const colour = (t: Theme, i: number): string => t.series[i % t.series.length]!;
