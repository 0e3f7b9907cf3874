// @ts-check
// What a page knows of time: how old its data is, what the server's clock says, and on a wall what is due and the position
// of the picture. Pure: times are passed in, so that ninety days can be tried in a second. `steady` is a clock that never
// jumps, `wall` the machine's own; both in ms.

/** Milliseconds by which the machine's clock may run ahead of the steady one within a second before it has jumped. */
const JUMP = 5_000;
/** Milliseconds between two places of the picture, and how many there are. */
const SHIFT_EVERY = 60_000;
export const PLACES = 9;
/** Milliseconds between two renewals of the screen's cookie. */
const RENEW_EVERY = 12 * 3600_000;

/** How old the numbers on the screen are. */
export class Age {
  #staleAfter = 5_000;
  #heard = null;
  #lag = 0;
  #drift = null;

  set staleAfter(ms) {
    this.#staleAfter = ms;
  }

  /** The numbers were right `lag` ms ago. */
  heard(steady, lag = 0) {
    this.#heard = steady;
    this.#lag = Math.max(0, lag);
  }

  /** No number could be read for `lag` ms, by readers that began at most that long ago: what is shown may be older. */
  failing(steady, lag) {
    if (this.#heard !== null) this.heard(steady, Math.max(this.at(steady), lag));
  }

  /**
   * Look at both clocks, about once a second, and return by how much the machine's own has jumped ahead. A machine that
   * slept woke with old data: its steady clock may not know. A clock that was set looks the same, until the next number.
   */
  look(steady, wall) {
    const drift = wall - steady;
    const ahead = this.#drift === null ? 0 : drift - this.#drift;
    this.#drift = drift;
    if (ahead <= JUMP) return 0;
    this.#lag += ahead;
    return ahead;
  }

  /** Milliseconds since the numbers were known to be right; null before the first. */
  at(steady) {
    return this.#heard === null ? null : steady - this.#heard + this.#lag;
  }

  old(steady) {
    const age = this.at(steady);
    return age === null || age > this.#staleAfter;
  }
}

/** The server's clock, as told with every message and carried on by the steady one. */
export class ServerClock {
  #ahead = 0;

  set(now, steady) {
    this.#ahead = now - steady;
  }

  /** The steady clock did not run for so long. */
  slept(ms) {
    this.#ahead += ms;
  }

  now(steady) {
    return this.#ahead + steady;
  }
}

/** Something to do every so often; nothing is done twice because a timer was late. */
export class Due {
  #every;
  #next;

  constructor(every, steady) {
    this.#every = every;
    this.#next = steady + every;
  }

  take(steady) {
    if (steady < this.#next) return false;
    this.#next = steady + this.#every;
    return true;
  }

  /** Try again sooner than it would be due. */
  soon(steady, wait) {
    this.#next = steady + wait;
  }
}

/** The place of the picture: another one every minute, against burn-in. */
export function placeOf(steady) {
  return Math.floor(steady / SHIFT_EVERY) % PLACES;
}

export function renewal(steady) {
  return new Due(RENEW_EVERY, steady);
}
