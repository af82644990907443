// Liveness and the keyboard. Every page works without this file.
"use strict";

const typing = (node) => node.matches("input, select, textarea, [contenteditable]");
const rowsOf = () => [...document.querySelectorAll("tr[data-row], .rows > article")];
const opened = new Set();
let chosen = "";
let stream = null;

function keyOf(row) {
  return row.dataset.row || row.querySelector("a")?.href || "";
}

function choose(step) {
  const rows = rowsOf();
  if (!rows.length) return;
  const now = rows.findIndex((row) => keyOf(row) === chosen);
  const next = Math.min(Math.max(now + step, 0), rows.length - 1);
  chosen = keyOf(rows[next]);
  mark();
  focusOn(rows[next]);
  rows[next].scrollIntoView({ block: "nearest" });
}

function focusOn(row) {
  const link = row.querySelector("a.strong") || row.querySelector("a");
  link?.focus({ preventScroll: true });
}

// Rows that were replaced have lost the focus: the chosen one gets it back.
function mark() {
  for (const row of rowsOf()) {
    const own = chosen !== "" && keyOf(row) === chosen;
    row.classList.toggle("chosen", own);
    if (own && document.activeElement === document.body) focusOn(row);
  }
}

function say(words, tone) {
  const badge = document.getElementById("liveness");
  if (!badge) return;
  badge.textContent = words;
  badge.className = `badge ${tone}`;
}

// One stream for a page, and none while nobody sees the page: browsers allow six to a server.
function listen() {
  const address = document.getElementById("main")?.dataset.live;
  if (!address || !window.htmx || document.hidden || stream) return;
  stream = new EventSource(address);
  stream.onopen = () => say("live", "good");
  stream.onerror = () => say("not connected", "warn");
  stream.addEventListener("changed", () => {
    const part = document.querySelector("[hx-trigger='live']");
    if (part && !document.getElementById("help")?.open) window.htmx.trigger(part, "live");
  });
}

function rest() {
  stream?.close();
  stream = null;
}

function follow() {
  const log = document.getElementById("log");
  if (!log?.dataset.follow) return;
  const lines = new EventSource(log.dataset.follow);
  const most = 5000;
  log.scrollTop = log.scrollHeight;
  lines.onopen = () => say("following", "good");
  lines.addEventListener("line", (event) => {
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
    log.append(`${event.data}\n`);
    while (log.childNodes.length > most) log.firstChild.remove();
    if (atEnd) log.scrollTop = log.scrollHeight;
  });
  lines.addEventListener("end", (event) => {
    say(event.data, "");
    lines.close();
  });
  lines.onerror = () => say("not connected", "warn");
}

async function copy(button) {
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function help() {
  const dialog = document.getElementById("help");
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

const keys = {
  "/": () => document.getElementById("search")?.focus(),
  j: () => choose(1),
  k: () => choose(-1),
  c: () => document.querySelector(".title [data-copy]")?.click(),
  "?": help,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) return event.target.blur();
  if (typing(event.target)) return;
  const section = document.querySelector(`nav [data-key="${CSS.escape(event.key)}"]`);
  if (section) return section.click();
  if (Object.hasOwn(keys, event.key)) {
    event.preventDefault();
    keys[event.key]();
  }
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  if (event.target.id === "help-button") help();
});

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-submit]")) event.target.form.requestSubmit();
});

document.addEventListener("toggle", (event) => {
  const key = event.target.querySelector?.("a")?.href;
  if (!key) return;
  if (event.target.open) opened.add(key);
  else opened.delete(key);
}, true);

function dress() {
  for (const hidden of document.querySelectorAll("[data-copy], #help-button")) {
    hidden.hidden = false;
  }
  for (const details of document.querySelectorAll("details")) {
    const key = details.querySelector("a")?.href;
    if (key && opened.has(key)) details.open = true;
  }
  mark();
}

document.documentElement.classList.add("scripts");
document.addEventListener("htmx:afterSettle", dress);
document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
window.addEventListener("pagehide", rest);
dress();
listen();
follow();
