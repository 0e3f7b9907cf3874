// @ts-check
// What every page runs. Starts the live view where there is one: <body data-live-topic="overview"> or "queue:NAME".

import { lookNow, queueChanged, startAge } from "./age.js";
import { Announcer } from "./announce.js";
import { Screen } from "./apply.js";
import { setText } from "./attention.js";
import { showCopyButtons } from "./copy.js";
import { startCountdowns } from "./countdown.js";
import { age, counted, number } from "./format.js";
import { startForms } from "./forms.js";
import { Freshness } from "./fresh.js";
import { startPresses } from "./hold_while_pressed.js";
import { startKeys } from "./keys.js";
import { startMore } from "./more.js";
import { filter, isFiltered, keepOrder } from "./order.js";
import { isOther } from "./other_queue.js";
import { startPalette } from "./palette.js";
import { refetchTable, startFolds } from "./refetch.js";
import { nameRows, tickAges } from "./row.js";
import { startSearches } from "./search.js";
import { startSelections } from "./select.js";
import { startSheets } from "./sheet.js";
import { Connection } from "./socket.js";
import { levelsWords, tabWords, word, worstOf } from "./words.js";
import { offerOwnZone } from "./zone.js";

const topic = document.body.dataset.liveTopic;
if (topic) start(topic);
else startCountdowns();
showCopyButtons();
startSelections();
startSearches();
offerOwnZone();
startPalette();
startPresses();
startKeys();
startSheets(lookNow);
startForms();

function start(topic) {
  const overview = topic === "overview";
  const fresh = new Freshness();
  const announcer = new Announcer();
  announcer.tell("fresh", word("fresh-live"));
  announcer.tell("order", "");
  const screen = new Screen(topic, {
    applied: (seq) => connection.ack(seq),
    grow: () => refetchTable().then(watch),
  });
  if (!overview) startAge((text) => announcer.tell("list", text));
  /** What the title says: { level, queues, ready }, the level null until it is known. */
  let standing = { level: null, queues: 0, ready: null };
  /** How many of all queues have each level, null until it is known. */
  let levels = null;
  let attached = false;
  /** What the newest frame is of: nothing has changed until another one comes. */
  let change = null;
  let greeted = false;
  /** Whether the queue of this page is deleted; it may come back from the trash. */
  let gone = false;
  let patience = 5;
  let watched = "";
  /** Whether this page is of another release than the server: these scripts cannot read its rows. */
  let outdated = false;

  const address = new URL(document.body.dataset.liveUrl || "/live/", location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const connection = new Connection(address.href, document.body.dataset.release, {
    hello(message) {
      screen.setClock(message.now);
      fresh.staleAfter = patience = message.stale_after;
      // Frames are counted anew: what changed meanwhile is not told by their number.
      if (greeted) document.dispatchEvent(new Event("pqadmin:changed"));
      greeted = true;
      change = null;
    },
    frame(message) {
      if (!overview && isOther(message.rows[0])) return connection.end("outdated");
      screen.setClock(message.now);
      screen.add(message);
      if (overview || message.rows.length > 0) gone = false;
      else if (message.gone.length > 0) gone = true;
      if (gone) fresh.connection("outdated");
      else fresh.heard();
      const now = overview ? message.seq : (message.rows[0]?.change ?? change);
      if (change !== null && now !== change) document.dispatchEvent(new Event("pqadmin:changed"));
      change = now;
      if (overview) {
        levels = message.total.levels;
        standing = { ...worstOf(levels), ready: null };
        announcer.tell("levels", levelsWords(levels));
        showSumsAge(message.now - message.as_of, patience);
      } else if (message.rows.length > 0) {
        const [row] = message.rows;
        standing = { level: row.level, queues: 1, ready: row.ready };
        attached = row.attached !== null;
        queueChanged(row.change);
      }
      show();
    },
    beat(message) {
      screen.setClock(message.now);
      if (gone) return;
      fresh.heard(message.now - message.checked);
      if (message.level !== null) standing = { level: message.level, queues: message.queues, ready: message.ready };
      showSumsAge(message.now - message.as_of, patience);
      show();
    },
    trouble(message) {
      fresh.trouble(message.message, message.now - message.since);
      show();
    },
    refused(message) {
      if (message.code === "unknown-queue" || message.fatal) fresh.connection("outdated");
      show();
    },
    state(name) {
      outdated = name === "outdated";
      fresh.connection(name);
      show();
    },
  });

  function watchMessage() {
    if (!overview) return { t: "watch", topic };
    const complete = isComplete();
    const message = { t: "watch", topic, queues: screen.ids(), grow: complete, complete };
    return isFiltered() ? { ...message, filter: filter() } : { ...message, groups: screen.groups() };
  }

  /** Tell the server what is on the screen, if that is something else than before. */
  function watch() {
    if (outdated) return;
    if (overview) nameRows();
    const table = document.getElementById("queues");
    if (table !== null && !("watched" in table.dataset)) {
      table.dataset.watched = ""; // another table came in its place: its rows want a whole frame
      watched = "";
    }
    const message = watchMessage();
    const text = JSON.stringify(message);
    if (text === watched) return;
    watched = text;
    connection.watch(message);
  }

  function show() {
    const told = fresh.show();
    if (told !== null) announcer.tell("fresh", told);
    const { level, queues, ready } = standing;
    if (gone) screen.title(word("gone"), true);
    else if (level === null) return;
    else if (overview) screen.title(tabWords(level, queues), fresh.live);
    else screen.title(`${word(`level-${level}`)} (${attached ? counted(ready) : number(ready)})`, fresh.live);
  }

  function second() {
    const slept = fresh.look();
    screen.slept(slept);
    if (slept > 0) connection.openAnew();
    connection.check();
    if (document.hidden) return;
    show();
    if (fresh.seconds !== null) tickAges(screen.now);
    if (!overview) return;
    screen.tick();
    screen.tidy();
    announcer.tell("order", keepOrder(isFiltered() ? null : levels));
    watch();
  }

  document.addEventListener("visibilitychange", () => {
    // Without animation frames nothing is acknowledged: write what is pending before they stop.
    if (document.hidden) screen.flush();
    connection.show(!document.hidden);
    if (!document.hidden) second();
  });
  addEventListener("online", () => connection.retry());
  addEventListener("pageshow", (event) => event.persisted && connection.retry());
  setInterval(second, 1000);
  if (overview) {
    startMore();
    startFolds();
    document.addEventListener("htmx:after:swap", watch); // another filter is watched at once
    let scrolled = 0; // of very many rows those in sight are watched
    const look = () => {
      clearTimeout(scrolled);
      scrolled = setTimeout(watch, 150);
    };
    addEventListener("scroll", look, { passive: true });
  }
  startCountdowns(() => (fresh.seconds === null ? null : screen.now));
  if (document.hidden) connection.show(false);
  watch();
  connection.open();
}

/** Say how old the oldest reading in the sums is (ms), when that is more than a reader expects of live numbers. */
function showSumsAge(ms, patience) {
  for (const element of document.querySelectorAll("[data-sums-age]")) {
    element.hidden = ms / 1000 <= patience;
    if (!element.hidden) setText(element, ` · ${word("sums-age", { age: age(ms / 1000) })}`);
  }
}

/** The table means to show every queue that matches its filter, or every one there is, new ones too: no page cuts it. */
function isComplete() {
  if (new URLSearchParams(location.search).get("after")) return false;
  return "liveComplete" in document.body.dataset || document.querySelector("#queues[data-live-complete]") !== null;
}
