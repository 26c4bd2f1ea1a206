// SPDX-License-Identifier: BSD-3-Clause
//
// Script of the report: unpacks data on demand, draws figures when they come into view, switches
// between light and dark, and shows the definition of the number under the pointer.
"use strict";

const MOST_DRAWN = 24; // max drawn figures; beyond this, the one out of view for longest is removed
const HOVER_MS = 350;
const PAPER_PX = { width: 975, height: 460 }; // of a landscape page, below titles and words
const NARROW_PX = 560; // of a figure
const root = document.documentElement;

/** Returns the content of a data block of the page (gzip in base64). */
async function unpacked(id) {
  const binary = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// --- light and dark -------------------------------------------------------------------------------

const dusk = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : dusk.matches;
}

function colours(dark) {
  return dark
    ? { ink: "#e6e8ea", soft: "#a3abb2", line: "#3a4248", ground: "#171b1f" }
    : { ink: "#1c2226", soft: "#5b646b", line: "#d9dee2", ground: "#ffffff" };
}

function themed(layout, dark) {
  const { ink, soft, line, ground } = colours(dark);
  const axis = {
    gridcolor: line, linecolor: soft, zerolinecolor: soft, tickcolor: soft, automargin: true,
    title: { font: { color: ink } }, tickfont: { color: ink },
  };
  const base = {
    font: { family: 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif', size: 13, color: ink },
    paper_bgcolor: ground, plot_bgcolor: ground,
    xaxis: axis, yaxis: axis,
    polar: { bgcolor: ground, radialaxis: axis, angularaxis: axis },
    legend: { font: { color: ink } },
    coloraxis: { colorbar: { tickfont: { color: ink } } },
    hoverlabel: { font: { family: "system-ui, sans-serif" }, align: "left" },
    annotationdefaults: { font: { color: ink } },
    margin: { l: 64, r: 24, t: 24, b: 56 },
  };
  const { title, ...rest } = structuredClone(layout); // the title stands above, in the page
  return { ...rest, template: { layout: base }, autosize: true };
}

/** Adapts a layout to a narrow window: smaller margins, colour bars below the drawing. */
function fitted(data, layout, width) {
  if (width >= NARROW_PX) return { data, layout };
  const thin = { ...layout, margin: { l: 48, r: 12, t: 24, b: 56, ...layout.margin } };
  if (!data.some((trace) => trace.colorbar)) return { data, layout: thin };
  const named = layout.annotations?.length ? 24 : 0; // modules' names are between bar and map
  thin.margin = { ...thin.margin, t: 64 + named };
  thin.height = Math.min(layout.height, width + 120 + named);
  const lying = { orientation: "h", thickness: 12, x: 0.5, len: 1, yref: "container", y: 1, yanchor: "top", ypad: 0 };
  const bar = ({ title, ...rest }) => ({ ...rest, title: { ...title, side: "top" }, ...lying });
  return { data: data.map((trace) => (trace.colorbar ? { ...trace, colorbar: bar(trace.colorbar) } : trace)), layout: thin };
}

function applyTheme() {
  document.getElementById("theme").setAttribute("aria-pressed", String(isDark()));
  for (const figure of figures.values()) figure.redraw();
}

// --- figures --------------------------------------------------------------------------------------

let plotly = null;

function needPlotly() {
  plotly ??= unpacked("plotly").then((code) => {
    const script = document.createElement("script");
    script.textContent = code;
    document.head.append(script);
    return window.Plotly;
  });
  return plotly;
}

class Drawn {
  constructor(place) {
    this.place = place;
    this.name = place.dataset.figure;
    this.inSight = false;
    this.seen = 0;
    this.state = "empty"; // drawn, failed
    this.drawing = null;
  }

  async content() {
    this.parsed ??= unpacked(`data-${this.name}`).then(JSON.parse);
    return this.parsed;
  }

  /** Draws the figure unless it is drawn; returns the promise of the drawing in progress. */
  draw() {
    if (this.state !== "drawn") this.drawing ??= this.drawNow().finally(() => { this.drawing = null; });
    return this.drawing;
  }

  async drawNow() {
    try {
      await tablesFirst();
      const [Plotly, { data, layout }] = await Promise.all([needPlotly(), this.content()]);
      const height = layout.height ?? 420;
      const dark = isDark();
      const fitting = fitted(data, { ...layout, height }, this.place.clientWidth);
      this.place.style.minHeight = `${fitting.layout.height}px`;
      await Plotly.newPlot(this.place, fitting.data, themed(fitting.layout, dark), this.config());
      this.state = "drawn";
      if (dark !== isDark()) this.redraw(); // it was changed meanwhile
    } catch (error) {
      this.state = "failed";
      this.place.textContent = `This figure can't be drawn here: ${error.message}`;
      console.error(error);
    }
    this.place.dataset.state = this.state;
  }

  config() {
    const image = (format) => ({
      name: format,
      title: `Save as ${format.toUpperCase()}, in light colours`,
      icon: { svg: wordIcon(format.toUpperCase()) },
      click: () => this.save(format),
    });
    return {
      responsive: true,
      displaylogo: false,
      modeBarButtonsToRemove: ["toImage", "sendDataToCloud", "lasso2d", "select2d"],
      modeBarButtonsToAdd: [image("png"), image("svg")],
    };
  }

  async image(format, width = 1000) {
    const [Plotly, { data, layout }] = await Promise.all([needPlotly(), this.content()]);
    const height = Math.max(layout.height ?? 420, 420);
    const title = { text: this.place.dataset.title, x: 0.02, xanchor: "left", font: { size: 16 } };
    const margin = { ...layout.margin, t: Math.max(layout.margin?.t ?? 0, 64) };
    const figure = { data: structuredClone(data), layout: { ...themed(layout, false), title, margin } };
    return Plotly.toImage(figure, { format, width, height, scale: format === "png" ? 2 : 1 });
  }

  async save(format) {
    const link = element("a");
    link.href = await this.image(format);
    link.download = `${this.name}.${format}`;
    link.click();
  }

  redraw() {
    if (this.state !== "drawn") return;
    this.remove();
    if (this.inSight) this.draw();
  }

  remove() {
    window.Plotly.purge(this.place);
    this.place.replaceChildren();
    this.state = "empty";
    delete this.place.dataset.state;
  }
}

/** Returns an icon with a word, which distinguishes two similar buttons. */
function wordIcon(word) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 20" class="word"><text x="16" y="15">${word}</text></svg>`;
}

const figures = new Map();

function watchFigures() {
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.get(entry.target.dataset.figure);
      figure.inSight = entry.isIntersecting;
      figure.seen = performance.now();
      if (entry.isIntersecting) figure.draw();
    }
    const drawn = [...figures.values()].filter((figure) => figure.state === "drawn" && !figure.inSight);
    drawn.sort((a, b) => b.seen - a.seen).slice(MOST_DRAWN).forEach((figure) => figure.remove());
  }, { rootMargin: "400px" });
  for (const place of document.querySelectorAll("[data-figure]")) {
    figures.set(place.dataset.figure, new Drawn(place));
    watch.observe(place);
  }
}

// --- tables ---------------------------------------------------------------------------------------

const tables = new Map();

function watchTables() {
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      drawTable(target);
    }
  }, { rootMargin: "400px" });
  for (const place of document.querySelectorAll("[data-table]")) watch.observe(place);
}

function drawTable(place) {
  if (!tables.has(place.id)) {
    tables.set(place.id, unpacked(`data-${place.id}`).then((text) => new LongTable(place, JSON.parse(text))));
  }
  return tables.get(place.id);
}

// --- where the reader is --------------------------------------------------------------------------

/** Expands only the section in view in the list of contents. */
function watchSections() {
  const links = new Map();
  for (const link of document.querySelectorAll("nav > ol > li > a")) links.set(link.hash.slice(1), link.parentElement);
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) links.get(target.id)?.classList.toggle("here", isIntersecting);
  }, { rootMargin: "-20% 0px -79% 0px" }); // one line, a fifth down the window
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);
}

/** Opens the folded sections around a place, such as a link's target. */
function unfold(place) {
  for (let fold = place?.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

function goTo(hash) {
  const place = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  if (!place) return;
  unfold(place.querySelector("details.section > summary") ?? place);
  place.scrollIntoView();
}

function watchLinks() {
  const menu = document.getElementById("menu");
  const contents = document.getElementById("contents");
  const show = (on) => {
    contents.classList.toggle("open", on);
    menu.setAttribute("aria-expanded", String(on));
  };
  menu.addEventListener("click", () => show(!contents.classList.contains("open")));
  document.addEventListener("keydown", (event) => event.key === "Escape" && show(false));
  contents.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    show(false);
    unfold(document.getElementById(link.hash.slice(1)));
    setTimeout(() => goTo(link.hash)); // when it has a height
  });
  goTo(location.hash);
}

/** Folded parts that are open for printing, to be closed again. */
const folded = [];

function unfoldAll(on) {
  if (on) folded.push(...document.querySelectorAll("main details:not([open]):not(:has(> pre))"));
  for (const fold of folded) fold.open = on;
  if (!on) folded.length = 0;
}

/** Draws tables in view before figures, because a figure blocks the page for longer. */
async function tablesFirst() {
  await new Promise(requestAnimationFrame);
  await Promise.all(tables.values());
}

// --- what a number means --------------------------------------------------------------------------

const hint = element("div");
hint.id = "hint";
hint.setAttribute("role", "tooltip");
hint.hidden = true;
let hovering = 0;

/** The words for what the pointer or the focus is on: [heading, definition], or null. */
async function meaning(target) {
  const own = target.closest("[data-definition]");
  if (own) return [own.dataset.name ?? "", own.dataset.definition];
  const cell = target.closest("td[data-column], th button[data-column]");
  const place = target.closest("[data-table]");
  if (!cell || !place) return null;
  const table = await tables.get(place.id);
  const column = table.columns[Number(cell.dataset.column)];
  const unit = column.unit ? `, ${column.unit}` : "";
  const words = cell.classList.contains("unknown") ? `Not observed. ${column.definition}` : column.definition;
  const cut = cell.scrollWidth > cell.clientWidth ? `${cell.textContent}: ` : "";
  return [`${column.title}${unit}`, cut + words];
}

async function showHint(target) {
  const found = await meaning(target);
  if (!found || !found[1]) return;
  hint.replaceChildren(element("strong", "", found[0]), element("span", "", found[1]));
  hint.hidden = false;
  const box = target.getBoundingClientRect();
  const { width, height } = hint.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left), innerWidth - width - 8);
  const below = box.bottom + 6 + height < innerHeight;
  hint.style.left = `${left}px`;
  hint.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - height - 6)}px`;
}

function hideHint() {
  clearTimeout(hovering);
  hint.hidden = true;
}

function watchHints() {
  document.body.append(hint);
  const begin = (event) => {
    hideHint();
    const target = event.target.closest("[data-definition], td[data-column], th button[data-column]");
    if (target) hovering = setTimeout(() => showHint(target), event.type === "focusin" ? 0 : HOVER_MS);
  };
  document.addEventListener("mouseover", begin);
  document.addEventListener("focusin", begin);
  document.addEventListener("focusout", hideHint);
  document.addEventListener("scroll", () => { hint.hidden = true; }, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && hideHint());
}

// --- paper ----------------------------------------------------------------------------------------

/** Draws all figures and tables in light colours, as wide as paper. */
async function toPaper() {
  root.dataset.theme = "light";
  root.classList.add("paper");
  unfoldAll(true);
  for (const place of document.querySelectorAll("[data-table]")) await drawTable(place);
  await drawAnew();
}

/** Draws everything for paper, prints the page, and restores the screen's form. */
async function printAll() {
  const theme = root.dataset.theme;
  await toPaper();
  try {
    print();
  } finally {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    root.classList.remove("paper");
    unfoldAll(false);
    applyTheme();
  }
}

async function drawAnew() {
  for (const figure of figures.values()) {
    await figure.drawing;
    if (figure.state === "drawn") figure.remove();
    await figure.draw();
  }
}

/** A figure is as wide as the window, and one of a heat map as high: on paper each fits on a page. */
function fitPaper(on) {
  for (const { place, state } of figures.values()) {
    const share = Math.min(1, PAPER_PX.width / place.clientWidth, PAPER_PX.height / place.clientHeight);
    place.style.zoom = on && state === "drawn" ? String(share) : "";
  }
}

async function eachTable(act) {
  for (const made of [...tables.values()]) act(await made);
}

// --- beginning ------------------------------------------------------------------------------------

function begin() {
  if (!("DecompressionStream" in window)) {
    document.body.prepend(element("p", "notice", "This browser is too old to unpack the tables and figures: it needs DecompressionStream (Chrome 80, Firefox 113, Safari 16.4 or newer)."));
    return;
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    applyTheme();
  });
  document.getElementById("print").addEventListener("click", printAll);
  dusk.addEventListener("change", applyTheme);
  addEventListener("beforeprint", () => { fitPaper(true); eachTable((table) => table.print(true)); });
  addEventListener("afterprint", () => { fitPaper(false); eachTable((table) => table.print(false)); });
  watchFigures();
  watchTables();
  watchSections();
  watchLinks();
  watchHints();
  applyTheme();
}

begin();
if (location.hash === "#paper") toPaper(); // `report --pdf`
