// Opens every page of the built documentation in a headless Chromium, and prints what is wrong with it:
//
//   node check.mjs BROWSER FOLDER [PAGE ...]
//
// Pages are checked at three widths. The rules of accessibility, which take most of the time, are checked on one page in
// light on a wide screen and on the next one in dark on a narrow one; on pages that are named, in both. The exit status
// is 1 if anything is found. Nothing is asked from the network: pages come from a server of this process, and a request
// to any other host is a finding. Of the pages that one template makes of docstrings, which are two thirds of all, one
// in ten is opened; their names choose them, so that a page that is new or gone does not change which others are.

import { createServer } from "node:http";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import axe from "axe-core";
import { chromium } from "playwright-core";
import { SEARCHES } from "./searches.mjs";

const WIDTHS = [1400, 780, 390];
// Widths, and colours, at which the rules of accessibility are checked.
const MODES = { 1400: "light", 390: "dark" };
const JOBS = 2;
const OPTIONS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
};

const [browserPath, folder, ...chosen] = process.argv.slice(2);
const findings = new Map();

function found(page, what) {
  if (!findings.has(what)) {
    findings.set(what, new Set());
    console.log(`${page}: ${what}`);
  }
  findings.get(what).add(page);
}

function serve() {
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    try {
      const body = await readFile(path.join(folder, name));
      response.writeHead(200, { "Content-Type": TYPES[path.extname(name)] ?? "application/octet-stream" });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

async function pagesOf(folder) {
  const names = await readdir(folder, { recursive: true });
  const pages = names.filter((name) => name.endsWith(".html") && !name.startsWith("_static/")).sort();
  // Listings of source code are all alike: one of them, and the list of them, stand for all.
  const listing = pages.find((name) => name.startsWith("_modules/fairconstrained/"));
  const sum = (name) => Array.from(name).reduce((total, letter) => total + letter.charCodeAt(0), 0);
  const isOpened = (name) => {
    if (name.startsWith("_modules/fairconstrained/")) return name === listing;
    return !name.startsWith("generated/api/") || sum(name) % 10 === 0;
  };
  return pages.filter(isOpened);
}

// Runs in the page: elements that do not fit, and the width of the document.
function layout(width) {
  const wrong = [];
  const name = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 60);
    return `<${element.localName} class="${element.getAttribute("class") ?? ""}"> ${text}`;
  };
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    wrong.push(`the page is ${root.scrollWidth - root.clientWidth} px wider than the screen`);
  }
  // Whether a box within the page scrolls; that the page itself does is a fault.
  const scrolls = (element) => {
    for (let box = element.parentElement; box && !box.matches(".bd-article-container"); box = box.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
    }
    return false;
  };
  for (const element of document.querySelectorAll("main *, nav, aside")) {
    const box = element.getBoundingClientRect();
    if (box.width > 0 && box.right > root.clientWidth + 1 && !scrolls(element)) wrong.push(`beyond the screen: ${name(element)}`);
  }
  // On a screen of a desk nothing but tables and long outputs has to be scrolled.
  if (width >= 1400) {
    for (const element of document.querySelectorAll("div.highlight-python pre, div.highlight-default pre, main math")) {
      const box = element.localName === "math" ? element.parentElement : element;
      if (element.closest("table")) continue;
      if (box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).display !== "inline") {
        wrong.push(`wider than its box: ${name(element)}`);
      }
    }
  }
  return wrong;
}

// Runs in the page: what it refers to, what can be referred to, and images without a description.
function contents() {
  const links = Array.from(document.querySelectorAll("a[href]"), (link) => link.href);
  const ids = Array.from(document.querySelectorAll("[id]"), (element) => element.id);
  const bare = Array.from(document.images)
    .filter((image) => !image.alt.trim() || /\.(png|svg|jpg)$/.test(image.alt) || image.naturalWidth === 0)
    .map((image) => image.getAttribute("src"));
  return { links, ids, bare };
}

async function rules(page, name, mode) {
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  for (const violation of result.violations) {
    for (const node of violation.nodes) {
      const summary = node.any.concat(node.all, node.none).map((check) => check.message)[0] ?? violation.help;
      found(name, `${violation.id} (${mode}): ${summary} ${node.html.replace(/\s+/g, " ").slice(0, 160)}`);
    }
  }
}

// The theme and the site let the keyboard reach boxes that scroll, a while after a change of the width.
async function settled(page) {
  const reached = () =>
    Array.from(document.querySelectorAll('pre, math[display="block"], .pst-scrollable-table-container')).every(
      (box) => box.scrollWidth <= box.clientWidth || box.tabIndex === 0,
    );
  await page.waitForFunction(reached, null, { timeout: 5000 }).catch(() => {}); // if not, the rules find it
}

async function check(context, origin, known, name, modes) {
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && found(name, `console: ${message.text()}`));
  page.on("pageerror", (error) => found(name, `error: ${error.message}`));
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(origin)) found(name, `asks ${request.url()}`);
  });
  await page.setViewportSize({ width: WIDTHS[0], height: 1000 });
  await page.goto(`${origin}/${name}`, { waitUntil: "load" });
  const { links, ids, bare } = await page.evaluate(contents);
  known.set(name, { links, ids: new Set(ids) });
  for (const image of bare) found(name, `image without a description, or not shown: ${image}`);
  await page.addScriptTag({ content: axe.source });
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 1000 });
    for (const what of await page.evaluate(layout, width)) found(name, `at ${width} px: ${what}`);
    if (!modes[width]) continue;
    await page.emulateMedia({ colorScheme: modes[width], reducedMotion: "reduce" });
    await settled(page);
    await rules(page, name, modes[width]);
  }
  await page.close();
}

function checkLinks(origin, known, names) {
  for (const [name, { links }] of known) {
    for (const link of links) {
      const url = new URL(link);
      if (url.origin !== origin) continue;
      const target = decodeURIComponent(url.pathname.slice(1)) || "index.html";
      const anchor = decodeURIComponent(url.hash.slice(1));
      const isPage = target.endsWith(".html");
      if (isPage && !names.has(target)) found(name, `link to a page that is missing: ${target}`);
      // A page that was not opened in this run cannot be asked for its anchors.
      if (isPage && anchor && known.has(target) && !known.get(target).ids.has(anchor)) {
        found(name, `link to a place that is missing: ${target}#${anchor}`);
      }
    }
  }
}

async function checkSearches(context, origin) {
  const page = await context.newPage();
  for (const [query, expected] of Object.entries(SEARCHES)) {
    await page.goto(`${origin}/search.html?q=${encodeURIComponent(query)}`);
    await page.waitForFunction(() => /found|did not match/.test(document.querySelector(".search-summary")?.textContent));
    const hits = await page.$$eval("ul.search li a", (links) => links.map((link) => new URL(link.href).pathname.slice(1)));
    const first = hits.slice(0, 12);
    for (const target of expected) {
      if (!first.includes(target)) found("search.html", `"${query}" does not find ${target} but ${first.slice(0, 5)}`);
    }
  }
  await page.close();
}

const names = await pagesOf(folder);
const server = await serve();
const origin = `http://127.0.0.1:${server.address().port}`;
const profile = await mkdtemp(path.join(tmpdir(), "docs-check-"));
const context = await chromium.launchPersistentContext(profile, { executablePath: browserPath, args: OPTIONS });
try {
  const known = new Map();
  const inTurns = Object.entries(MODES).map((mode) => Object.fromEntries([mode]));
  const queue = chosen.length
    ? chosen.map((name) => [name, MODES])
    : names.map((name, number) => [name, inTurns[number % inTurns.length]]);
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await check(context, origin, known, ...next);
  };
  await Promise.all(Array.from({ length: JOBS }, worker));
  checkLinks(origin, known, new Set(await readdir(folder, { recursive: true })));
  if (!chosen.length) await checkSearches(context, origin);
  for (const [what, pages] of findings) {
    if (pages.size > 1) console.log(`on ${pages.size} pages: ${what}`);
  }
  console.log(`docs-check: ${known.size} pages at ${WIDTHS.join(", ")} px, ${findings.size} findings`);
} finally {
  await context.close();
  server.close();
  await rm(profile, { recursive: true, force: true });
}
process.exitCode = findings.size ? 1 : 0;
