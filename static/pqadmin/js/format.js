// @ts-check
// How numbers, rates, ages and sizes are written for people: the same as pqadmin/display/format.py.
// Both are held to tests/format_vectors.json.

export const THIN = "\u202f";
const BREAKABLE = "\u2009";
/** The most digits of a number that is not broken over lines. */
const SHORT = 9;
export const UNKNOWN = "–";
const ELLIPSIS = "…";
const BRIEF_UNITS = "kMGTPE";
const BYTE_UNITS = ["kB", "MB", "GB", "TB", "PB", "EB"];

/** A whole number (or its digits as text, where it is too large for a Number) with its thousands apart. */
export function number(n) {
  if (n === null || n === undefined) return UNKNOWN;
  const digits = String(n).replace("-", "−");
  return digits.replace(/\B(?=(\d{3})+(?!\d))/g, digits.replace("−", "").length > SHORT ? BREAKABLE : THIN);
}

/** A whole number in at most four characters where there is no room for it: 999, 1.2k, 15k, 2M; cut, never up. */
export function brief(n) {
  if (n === null || n === undefined || n < 1000) return number(n);
  const power = Math.min(Math.floor((String(n).length - 1) / 3), BRIEF_UNITS.length);
  const tenths = Math.floor((n * 10) / 1000 ** power);
  const unit = BRIEF_UNITS[power - 1];
  return tenths < 100 && tenths % 10
    ? `${Math.floor(tenths / 10)}.${tenths % 10}${unit}`
    : `${number(Math.floor(tenths / 10))}${unit}`;
}

/** A depth that was counted some time ago: ≈ 12 408. None and one are seen, not counted; "…" is not counted yet. */
export function counted(n) {
  if (n === null || n === undefined) return ELLIPSIS;
  return n < 2 ? number(n) : `≈${THIN}${number(n)}`;
}

/** A rate per second: one decimal below 10, whole above, "<0.1" for what is not zero but rounds to it. */
export function rate(perSecond) {
  if (perSecond === null || perSecond === undefined || !Number.isFinite(perSecond)) return UNKNOWN;
  if (perSecond <= 0) return "0";
  const tenths = Math.floor(perSecond * 10 + 0.5);
  if (tenths === 0) return "<0.1";
  if (tenths < 100) return tenths % 10 ? `${Math.floor(tenths / 10)}.${tenths % 10}` : String(tenths / 10);
  return number(Math.floor(perSecond + 0.5));
}

/** A share of a whole in percent. What rounds to none or to all of it, and is not, says so. */
export function share(part) {
  const percent = Math.floor(100 * part + 0.5);
  if (percent === 0 && part !== 0) return `<${THIN}1${THIN}%`;
  if (percent === 100 && part !== 1) return `>${THIN}99${THIN}%`;
  return `${percent}${THIN}%`;
}

/** A length of time in its one fitting unit, cut and never rounded up. */
export function age(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  if (seconds < 10) {
    const tenths = Math.max(0, Math.floor(seconds * 10));
    return `${Math.floor(tenths / 10)}.${tenths % 10} s`;
  }
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (seconds < 120 * 60) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${number(Math.floor(seconds / 86400))} d`;
}

/** Steps of a length of time that is told roughly, in seconds: as in format.py. */
const STEPS = [
  ...[10, 20, 30],
  ...[1, 2, 3, 5, 8, 12, 15, 20, 30, 45].map((n) => 60 * n),
  ...[1, 2, 3, 5, 8, 12, 18, 24, 36].map((n) => 3600 * n),
];

/** A length of time in coarse steps, so that words with it seldom change; cut and never rounded up. */
export function about(seconds) {
  if (seconds < STEPS[0]) return `<${STEPS[0]} s`;
  if (seconds >= 48 * 3600) return age(seconds);
  const step = STEPS.filter((each) => each <= seconds).at(-1);
  if (step < 60) return `${step} s`;
  return step < 3600 ? `${step / 60} min` : `${step / 3600} h`;
}

/** The time that is left until a moment, to the second and rounded up, from 48 hours on to the nearest day: 12:30, 3 d. */
export function countdown(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  const left = Math.max(0, Math.ceil(seconds));
  if (left >= 48 * 3600) return age(left + 12 * 3600);
  const two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(left / 60);
  if (minutes < 60) return `${minutes}:${two(left % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(left % 60)}`;
}

/** A number of bytes in decimal units: 90.0 kB. */
export function size(n) {
  if (n === null || n === undefined) return UNKNOWN;
  if (n < 1000) return `${n} B`;
  let tenths = 0;
  let unit = "";
  for (let power = 1; power <= BYTE_UNITS.length; power += 1) {
    unit = BYTE_UNITS[power - 1];
    const scale = 1000 ** power;
    tenths = Math.floor((n * 10 + scale / 2) / scale);
    if (tenths < 10000) break;
  }
  return `${number(Math.floor(tenths / 10))}.${tenths % 10} ${unit}`;
}

const UTC = "UTC";
const zones = new Map();

/** The reader's time zone, as the page has it. */
export function readersZone() {
  return document.documentElement.dataset.timeZone || UTC;
}

function formatter(zone) {
  let known = zones.get(zone);
  if (known === undefined) {
    /** @type {Intl.DateTimeFormatOptions} */
    const digits = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
    known = new Intl.DateTimeFormat("en", { ...digits, hourCycle: "h23", timeZone: zone });
    zones.set(zone, known);
  }
  return known;
}

/** A moment (ms) in a zone: { date: "2026-11-21", time: "14:02:11", zone: "UTC+5:30" }. */
export function local(ms, zone = readersZone()) {
  const whole = Math.floor(ms / 1000) * 1000;
  const part = {};
  for (const { type, value } of formatter(zone).formatToParts(whole)) part[type] = value;
  const { year, month, day, hour, minute, second } = part;
  const offset = Math.round((Date.UTC(year, month - 1, day, hour, minute, second) - whole) / 60000);
  const minutes = Math.abs(offset) % 60;
  const hours = Math.floor(Math.abs(offset) / 60);
  const sign = offset < 0 ? "−" : "+";
  const name = offset === 0 ? UTC : `${UTC}${sign}${hours}${minutes ? `:${String(minutes).padStart(2, "0")}` : ""}`;
  return { date: `${year}-${month}-${day}`, time: `${hour}:${minute}:${second}`, zone: name };
}

/** A moment with its date where that is not today's: 14:02:11 UTC, or 2026-11-21 14:02:11 UTC+5:30. */
export function clock(ms, now, zone = readersZone()) {
  if (ms === null || ms === undefined) return UNKNOWN;
  const at = local(ms, zone);
  return `${at.date === local(now, zone).date ? "" : `${at.date} `}${at.time} ${at.zone}`;
}

/** A moment in full, in the reader's zone and, where that is another, in UTC too: what a hover shows. */
export function momentAndUtc(ms, zone = readersZone()) {
  const [here, there] = [local(ms, zone), local(ms, UTC)].map((at) => `${at.date} ${at.time} ${at.zone}`);
  return here === there ? here : `${here} · ${there}`;
}

/** Cut a text to a width in characters. */
export function shorten(text, width) {
  const characters = [...text];
  return characters.length <= width ? text : `${characters.slice(0, width - 1).join("")}…`;
}
