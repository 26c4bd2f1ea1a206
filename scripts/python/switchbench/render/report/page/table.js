// SPDX-License-Identifier: BSD-3-Clause
//
// Long tables that sort and filter. Only the rows in sight are in the document, so that a hundred
// thousand of them scroll as easily as ten. A table is a value made in Python (render/tables):
//   {columns: [{title, kind, unit, definition}], values: [[...] a column], marks: {column: ...}}
"use strict";

const ROW_PX = 29; // as page.css has it
const SPARE_ROWS = 12; // beyond either edge of what is in sight
const MOST_CHOICES = 14; // distinct words that are offered as a list to choose from
const PRINTED_ROWS = 400;
const UNFILTERED_ROWS = 5; // so few are seen at a glance
const UNKNOWN = "–";
const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });

/** Four significant digits, never in powers of ten. */
function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const places = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.01 ? 3 : 6;
  return value.toLocaleString("en-US", { minimumFractionDigits: Math.min(places, 3), maximumFractionDigits: places });
}

/** Four significant digits, with an exponent for very large or small numbers. */
function scientific(value) {
  const size = Math.abs(value);
  if (value === 0 || (size >= 1 && size < 1e6)) return digits(value);
  if (size >= 0.1 && size < 1) return value.toFixed(4);
  return value.toExponential(3).replace(/e([+-])(\d)$/, "e$10$2");
}

/** Bytes in binary units, such as 64 KiB. */
function sizeWords(size) {
  for (const [unit, bytes] of [["MiB", 1 << 20], ["KiB", 1 << 10]]) {
    if (size >= bytes) return `${Number((size / bytes).toPrecision(4))} ${unit}`;
  }
  return `${size.toFixed(0)} B`;
}

// As in printer.py.
const SHOW = {
  text: (value) => String(value),
  mark: (value) => String(value),
  verdict: (value) => String(value),
  number: digits,
  signed: (value) => (Math.abs(value) < 1e-6 ? "+0" : (value < 0 ? "" : "+") + (Math.abs(value) < 1e-3 ? scientific : digits)(value)),
  scientific,
  percent: (value) => value.toFixed(2),
  bytes: sizeWords,
  count: (value) => value.toLocaleString("en-US"),
};

function shown(column, value) {
  if (value === null || value === "") return column.kind === "mark" ? "" : UNKNOWN;
  return SHOW[column.kind](value);
}

function isWords(column) {
  return ["text", "mark", "verdict"].includes(column.kind);
}

/** Returns a value as displayed, so that a filter for 90.66 finds 90.6588. */
function seen(column, value) {
  const number = Number(shown(column, value).replaceAll(",", ""));
  return Number.isNaN(number) ? value : number; // 64 KiB
}

const HOLDS = {
  "<": (x, y) => x < y, "<=": (x, y) => x <= y, ">": (x, y) => x > y,
  ">=": (x, y) => x >= y, "=": (x, y) => x === y, "!=": (x, y) => x !== y,
};
const NUMBER = String.raw`-?(?:\d[\d,]*\.?\d*|\.\d+)`; // thousands may be set apart
const BOUND = new RegExp(`^(<=|>=|!=|<|>|=)\\s*(${NUMBER})$`);
const RANGE = new RegExp(`^(${NUMBER})\\s*\\.\\.\\s*(${NUMBER})$`);
const DIGITS = new RegExp(`^${NUMBER}$`);
const UNFINISHED = new RegExp(`^(?:[<>=!]=?|-|(?:${NUMBER})\\s*\\.\\.)$`); // somebody is typing
const FILTERS = "a bound such as > 5 or <= 3, a range such as 5..9, digits, or - for what was not observed";

/** Returns the test of a value that a filter's text stands for: `>5`, `<=3`, `5..9`,
 *  `-` for unknown, or a part of the text.
 *  null: no filter; undefined: invalid text. */
function makeFilter(column, words) {
  const text = words.trim().toLowerCase();
  if (text === "") return null;
  if (text === "-" || text === UNKNOWN) return (value) => value === null || value === "";
  if (isWords(column)) return (value) => shown(column, value).toLowerCase().includes(text);
  const number = (digits) => Number(digits.replaceAll(",", ""));
  const bound = BOUND.exec(text.replace("≤", "<=").replace("≥", ">=").replace("==", "=").replace("≠", "!="));
  if (bound) {
    const limit = number(bound[2]);
    return (value) => value !== null && HOLDS[bound[1]](seen(column, value), limit);
  }
  const range = RANGE.exec(text);
  if (range) {
    const [least, most] = [number(range[1]), number(range[2])];
    return (value) => value !== null && seen(column, value) >= least && seen(column, value) <= most;
  }
  if (DIGITS.test(text)) {
    const plain = text.replaceAll(",", "");
    return (value) => value !== null && shown(column, value).replaceAll(",", "").includes(plain);
  }
  return UNFINISHED.test(text) ? null : undefined;
}

class LongTable {
  constructor(place, table) {
    this.place = place;
    this.columns = table.columns;
    this.values = table.values;
    this.rows = table.values.length ? table.values[0].length : 0;
    this.order = Array.from({ length: this.rows }, (_, row) => row);
    this.filters = new Map();
    this.sorted = { column: -1, step: 0 };
    this.build();
    this.arrange();
  }

  build() {
    const bar = element("div", "table-bar");
    this.tally = element("span", "tally");
    this.tally.setAttribute("aria-live", "polite");
    const clear = button("Show all", () => this.clear());
    const save = button("Save as CSV", () => this.save());
    save.title = "The rows that are shown, in their order";
    bar.append(this.tally, ...(this.rows > UNFILTERED_ROWS ? [clear] : []), save);
    this.view = element("div", "table-view");
    this.view.tabIndex = 0;
    this.view.setAttribute("role", "region");
    this.view.setAttribute("aria-label", this.place.dataset.title);
    const table = element("table", "long");
    table.setAttribute("aria-rowcount", String(this.rows + 1));
    table.append(this.widths(), this.head());
    this.body = element("tbody");
    table.append(this.body);
    this.view.append(table);
    this.frame = element("div", "table-frame");
    this.frame.append(this.view);
    this.beyond = element("span", "beyond");
    bar.insertBefore(this.beyond, this.tally.nextSibling);
    this.place.replaceChildren(bar, this.frame);
    this.place.style.minHeight = ""; // which kept its room
    const moved = () => { this.draw(); this.cue(); };
    this.view.addEventListener("scroll", moved, { passive: true });
    new ResizeObserver(moved).observe(this.view);
  }

  /** Marks the table if columns are beyond the right edge. */
  cue() {
    const { scrollLeft, clientWidth, scrollWidth } = this.view;
    const edge = this.view.getBoundingClientRect().left + clientWidth;
    const hidden = [...this.titles.children].filter((cell) => cell.getBoundingClientRect().right > edge + 2).length;
    this.frame.toggleAttribute("data-right", scrollLeft + clientWidth < scrollWidth - 2);
    this.beyond.textContent = hidden ? `scroll right for ${hidden} more ${hidden === 1 ? "column" : "columns"} →` : "";
  }

  widths() {
    const group = element("colgroup");
    this.columns.forEach((column, number) => {
      const words = column.title.split(" ").map((word) => word.length);
      const unit = column.unit ? column.unit.length : 0;
      const filter = this.rows > UNFILTERED_ROWS ? 7 : 0; // room for its placeholder
      let most = Math.max(...words, unit, filter, Math.ceil(column.title.length / 2)) + 2;
      for (const value of this.values[number]) {
        const length = value === null ? 1 : shown(column, value).length;
        if (length > most) most = length;
      }
      const col = element("col");
      col.style.width = `${Math.min(most, 60) + 2}ch`;
      group.append(col);
    });
    return group;
  }

  head() {
    const head = element("thead");
    const titles = element("tr");
    const filters = element("tr", "filters");
    this.columns.forEach((column, number) => {
      const cell = element("th", column.kind);
      cell.scope = "col";
      const press = button("", () => this.sort(number));
      press.dataset.column = String(number);
      press.append(column.title, element("span", "arrow"));
      if (column.unit) press.append(element("small", "", column.unit));
      cell.append(press);
      titles.append(cell);
      const place = element("th", column.kind);
      place.append(this.filterBox(column, number));
      filters.append(place);
    });
    this.titles = titles;
    head.append(titles);
    if (this.rows > UNFILTERED_ROWS) head.append(filters);
    return head;
  }

  filterBox(column, number) {
    const label = `Filter by ${column.title}`;
    const distinct = isWords(column) ? new Set(this.values[number]) : null;
    let box;
    if (distinct && distinct.size > 1 && distinct.size <= MOST_CHOICES) {
      box = element("select");
      const words = [...distinct].map((value) => shown(column, value)).sort(collator.compare);
      box.append(new Option("all", ""), ...words.map((word) => new Option(word, word)));
      box.addEventListener("change", () => {
        const word = box.value;
        this.filter(number, word === "" ? null : (value) => shown(column, value) === word);
      });
    } else {
      box = element("input");
      box.type = "search";
      box.placeholder = isWords(column) ? "contains" : "> < ..";
      box.title = isWords(column)
        ? "A part of the text; - finds what was not observed"
        : `${FILTERS[0].toUpperCase()}${FILTERS.slice(1)}`;
      box.addEventListener("input", () => {
        const holds = makeFilter(column, box.value);
        box.setAttribute("aria-invalid", String(holds === undefined));
        this.filter(number, holds);
      });
    }
    box.setAttribute("aria-label", label);
    return box;
  }

  filter(number, holds) {
    if (holds) this.filters.set(number, holds);
    else this.filters.delete(number);
    this.arrange();
  }

  /** Returns the sentence on the first invalid filter; empty if all are valid. */
  unclear() {
    const [box] = this.place.querySelectorAll(".filters [aria-invalid=true]");
    return box ? `; "${box.value.trim()}" is no filter of numbers, which takes ${FILTERS}` : "";
  }

  clear() {
    this.filters.clear();
    for (const box of this.place.querySelectorAll(".filters input, .filters select")) {
      box.value = "";
      box.removeAttribute("aria-invalid");
    }
    this.arrange();
  }

  /** Sorts by a column: ascending, then descending, then in the original order. */
  sort(number) {
    const again = this.sorted.column === number;
    const step = again ? { 1: -1, "-1": 0, 0: 1 }[this.sorted.step] : 1;
    this.sorted = { column: number, step };
    [...this.titles.children].forEach((cell, i) => {
      const way = i === number ? { 1: "ascending", "-1": "descending", 0: "none" }[step] : "none";
      cell.setAttribute("aria-sort", way);
    });
    this.arrange();
  }

  arrange() {
    const tests = [...this.filters];
    let order = Array.from({ length: this.rows }, (_, row) => row);
    if (tests.length) {
      order = order.filter((row) => tests.every(([number, holds]) => holds(this.values[number][row])));
    }
    const { column, step } = this.sorted;
    if (step !== 0) order.sort(this.comparer(column, step));
    this.order = order;
    const all = this.rows.toLocaleString("en-US");
    const noun = this.rows === 1 ? "row" : "rows";
    const tally = tests.length ? `${order.length.toLocaleString("en-US")} of ${all} ${noun}` : `${all} ${noun}`;
    this.tally.textContent = tally + this.unclear();
    this.view.scrollTop = 0;
    this.draw(true);
  }

  comparer(number, step) {
    const values = this.values[number];
    const compare = isWords(this.columns[number]) ? collator.compare : (a, b) => a - b;
    return (a, b) => {
      const x = values[a];
      const y = values[b];
      if (x === null || y === null) return (x === null) - (y === null); // unknown last, both ways
      return step * compare(x, y) || a - b;
    };
  }

  draw(anew = false) {
    const from = Math.max(0, Math.floor(this.view.scrollTop / ROW_PX) - SPARE_ROWS);
    const to = Math.min(this.order.length, from + Math.ceil(this.view.clientHeight / ROW_PX) + 2 * SPARE_ROWS);
    if (!anew && from === this.from && to === this.to) return;
    this.fill(from, to);
  }

  fill(from, to) {
    this.from = from;
    this.to = to;
    const lines = [spacer(from)];
    for (let place = from; place < to; place++) lines.push(this.line(place));
    lines.push(spacer(this.order.length - to));
    this.body.replaceChildren(...lines);
  }

  line(place) {
    const row = this.order[place];
    const line = element("tr", place % 2 ? "odd" : "");
    line.setAttribute("aria-rowindex", String(place + 2));
    this.columns.forEach((column, number) => {
      const value = this.values[number][row];
      const cell = element("td", column.kind, shown(column, value));
      cell.dataset.column = String(number);
      if (value === null) cell.classList.add("unknown");
      if (column.kind === "verdict" && value) cell.dataset.verdict = value;
      line.append(cell);
    });
    return line;
  }

  /** Shows all rows for printing. */
  print(on) {
    if (on) this.fill(0, Math.min(this.order.length, PRINTED_ROWS));
    else this.draw(true);
    const left = this.order.length - PRINTED_ROWS;
    this.place.dataset.left = on && left > 0 ? `and ${left.toLocaleString("en-US")} rows more` : "";
  }

  save() {
    const quote = (value) => {
      const text = value === null ? "" : String(value);
      return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const titles = this.columns.map((c) => quote(c.unit ? `${c.title} (${c.unit})` : c.title));
    const lines = this.order.map((row) => this.values.map((column) => quote(column[row])).join(","));
    saveAs(new Blob([[titles.join(","), ...lines, ""].join("\n")], { type: "text/csv" }), `${this.place.dataset.table}.csv`);
  }
}

function spacer(rows) {
  const line = element("tr", "spacer");
  line.style.height = `${rows * ROW_PX}px`;
  line.setAttribute("aria-hidden", "true");
  return line;
}

function element(name, kind = "", text = "") {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  return made;
}

function button(text, press) {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", press);
  return made;
}

function saveAs(blob, name) {
  const link = element("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
