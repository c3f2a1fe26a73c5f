"use strict";
const { profiles, columns } = JSON.parse(document.getElementById("standings").textContent);
const selects = [...document.querySelectorAll("[data-condition]")], boxes = [...document.querySelectorAll("[data-property]")];
const metric = document.getElementById("metric"), megabytes = document.getElementById("megabytes");
const body = document.querySelector(".board tbody"), heads = [...document.querySelectorAll(".board thead button")];
let order = { column: "rank", sign: 1 };
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const meanOf = (method, name, keys) => {
  const found = keys.map((key) => method.values[name]?.[key]);
  return found.length && found.every(Number.isFinite) ? mean(found) : null;
};
// Bounds are no methods to choose, nor is what breaks the contract.
const isMethod = (m) => !m.upper_bound && !m.contract;
// Ranks of all that have a value everywhere: 1 for the best, equals share the mean of theirs.
function meanRanks(ranked, name, keys, lower) {
  const sums = new Map(ranked.map((m) => [m, 0]));
  for (const key of keys) {
    const value = (m) => (lower ? 1 : -1) * m.values[name][key];
    for (const m of ranked) {
      const better = ranked.filter((o) => value(o) < value(m)).length, equal = ranked.filter((o) => value(o) === value(m)).length;
      sums.set(m, sums.get(m) + better + (equal + 1) / 2);
    }
  }
  return new Map(ranked.map((m) => [m, sums.get(m) / keys.length]));
}
function show() {
  const profile = selects.find((s) => s.dataset.condition === "profile").value, { methods, conditions, quantiles } = profiles[profile];
  for (const picture of document.querySelectorAll("figure.picture")) picture.hidden = picture.dataset.profile !== profile;
  const name = metric.value, methodsOnly = methods.filter(isMethod);
  const chosen = conditions.filter((c) => selects.every((s) => !s.value || c[s.dataset.condition] === s.value));
  // A condition in which no method has a value does not count.
  const keys = chosen.map((c) => c.key).filter((key) => methodsOnly.some((m) => Number.isFinite(m.values[name]?.[key]))), lower = columns.find((c) => c.name === name).better === "lower";
  const most = megabytes.value === "" ? Infinity : Number(megabytes.value);
  // The most of any condition; of what was not measured nobody can say that it is little.
  const sent = (m) => Math.max(...keys.map((key) => (m.values["megabytes-up"]?.[key] ?? Infinity) + (m.values["megabytes-down"]?.[key] ?? Infinity)));
  const fits = (m) => boxes.every((b) => !b.checked || m.properties[b.dataset.property] === (b.dataset.wanted === "yes")) && sent(m) <= most;
  // What is never ranked stands below as long as nothing is demanded of it.
  const demanded = boxes.some((b) => b.checked) || most < Infinity;
  const shown = methods.filter((m) => (isMethod(m) ? fits(m) : !demanded));
  const ranked = shown.filter((m) => isMethod(m) && meanOf(m, name, keys) !== null);
  const ranks = keys.length ? meanRanks(ranked, name, keys, lower) : new Map();
  const apart = ranked.length > 1 ? quantiles[ranked.length] * Math.sqrt(ranked.length * (ranked.length + 1) / (6 * keys.length)) : Infinity;
  const value = (m) => {
    if (order.column === "title") return m.title;
    if (order.column === "rank") return ranks.get(m) ?? null;
    if (order.column.startsWith("property ")) return Number(m.properties[order.column.slice(9)] ?? false);
    return meanOf(m, order.column, keys);
  };
  const sorted = [...shown].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return order.sign * (typeof x === "number" ? x - y : x.localeCompare(y));
  });
  body.replaceChildren(...sorted.map((m) => row(m, ranks.get(m), keys)));
  pick(shown.filter(isMethod), ranked, ranks, apart, name, keys, sent);
  const hidden = methods.length - shown.length;
  const seeds = [...new Set(chosen.filter((c) => keys.includes(c.key)).map((c) => c.seeds))].sort((a, b) => a - b);
  const others = Object.entries(profiles).map(([other, of]) => [other, of.methods.filter((m) => !methods.some((o) => o.row === m.row)).map((m) => m.title)])
    .filter(([, titles]) => titles.length).map(([other, titles]) => `; only under ${other}: ${titles.join(", ")}`);
  document.getElementById("count").textContent = `Profile ${profile}: ${keys.length} of ${conditions.length} conditions (seeds: ${seeds.join(", ")}); ${ranked.length} methods ranked`
    + (hidden ? `, ${hidden} hidden by what is demanded` : "")
    + (Number.isFinite(apart) ? `; critical difference ${apart.toFixed(2)} ranks` : "") + others.join("");
}
const written = (number, { format }) => number.toLocaleString("en", format), rough = { format: { maximumSignificantDigits: 3 } };
function row(m, rank, keys) {
  const line = document.createElement("tr"), title = document.createElement("th");
  title.scope = "row";
  title.textContent = m.title + (m.upper_bound ? " †" : "");
  const texts = [rank === undefined ? "–" : rank.toFixed(2)];
  for (const column of columns) {
    const number = meanOf(m, column.name, keys), short = m.cut_short[column.name]?.some((key) => keys.includes(key));
    texts.push(number === null ? "–" : written(number, column) + (short ? " §" : ""));
  }
  for (const head of heads.filter((h) => h.dataset.column.startsWith("property "))) {
    const held = m.properties[head.dataset.column.slice(9)];
    texts.push(held === undefined ? "–" : held ? "yes" : "no");
  }
  texts.push(m.sends.join(", ") || "nothing");
  line.append(title, ...texts.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  return line;
}
// The best mean rank; or of those not told apart from it, and not worse by more than a point of a share, that which asks the least
// work of clients.
function pick(able, ranked, ranks, apart, name, keys, sent) {
  const text = document.getElementById("pick");
  if (!keys.length) { text.textContent = "No method was run in these conditions."; return; }
  if (!able.length) { text.textContent = "No method meets all constraints. Loosen one."; return; }
  if (!ranked.length) { text.textContent = "No method was run in all of these conditions. Choose fewer."; return; }
  const told = columns.find((c) => c.name === name), sign = told.better === "lower" ? -1 : 1, at = (m) => meanOf(m, name, keys);
  const best = ranked.reduce((a, b) => (ranks.get(a) <= ranks.get(b) ? a : b));
  const near = ranked.filter((m) => ranks.get(m) - ranks.get(best) < apart && sign * (at(best) - at(m)) <= 1);
  const work = (m) => meanOf(m, "client-teraflops", keys) ?? Infinity;
  const chosen = told.share ? near.reduce((a, b) => (work(b) < work(a) ? b : a), best) : best;
  const facts = [`${told.title} ${written(at(chosen), told)}`, `mean rank ${ranks.get(chosen).toFixed(2)}`];
  if (Number.isFinite(sent(chosen))) facts.push(`${written(sent(chosen), rough)} MB at most`);
  if (Number.isFinite(work(chosen))) facts.push(`${written(work(chosen), rough)} TFLOP at clients`);
  const title = document.createElement("strong");
  title.textContent = chosen.title;
  const why = ranked.length === 1 ? "it is the only method that meets all constraints and was run in all of these conditions"
    : chosen === best ? "it has the best mean rank"
      : `it is at most one point below ${best.title}, which has the best mean rank, and clients compute less`;
  const others = ranked.filter((m) => m !== chosen && Math.abs(ranks.get(m) - ranks.get(chosen)) < apart).map((m) => m.title);
  const count = `${keys.length} condition${keys.length > 1 ? "s" : ""}`;
  const alike = others.length ? `${count} ${keys.length > 1 ? "do" : "does"} not separate it from ${others.join(", ")}.`
    : ranked.length > 1 ? "It differs from all others by more than the critical difference." : "";
  text.replaceChildren("Pick ", title, ` (${facts.join(", ")}): ${why}. `, alike);
}
for (const head of heads) head.addEventListener("click", () => {
  const column = head.dataset.column, higher = columns.find((c) => c.name === column)?.better === "higher";
  const first = higher || column.startsWith("property ") ? -1 : 1;
  order = { column, sign: order.column === column ? -order.sign : first };
  heads.forEach((h) => h.parentElement.removeAttribute("aria-sort"));
  head.parentElement.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
  show();
});
[...selects, ...boxes, metric, megabytes].forEach((input) => input.addEventListener("input", show));
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
// Light and dark: the system's choice, until the reader makes one.
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = (root.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
});
show();
