// What the type checker has to know of a page beside the standard library of its version.

/** The selectors of the scripts name HTML elements. */
interface ParentNode {
  querySelector<E extends Element = HTMLElement>(selectors: string): E | null;
  querySelectorAll<E extends Element = HTMLElement>(selectors: string): NodeListOf<E>;
}

interface Element {
  closest<E extends Element = HTMLElement>(selectors: string): E | null;
  role: string | null;
  checkVisibility(): boolean;
}

interface Document {
  getElementById(id: string): any;
}

/** Events of a page come from elements. */
interface EventTarget {
  closest?<E extends Element = HTMLElement>(selectors: string): E | null;
  matches?: any;
}

/** The named fields of a form. */
interface HTMLFormControlsCollection {
  [name: string]: any;
}

interface Navigator {
  wakeLock?: { request(type: "screen"): Promise<EventTarget> };
}

declare const htmx: any;
declare const uPlot: any;

interface Window {
  htmx: any;
  uPlot: any;
}
