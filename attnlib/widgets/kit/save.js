/**
 * What a widget shows, as an SVG file that needs nothing else, and as a PNG.
 *
 * The browser has laid the widget out. This file walks over it and writes down each box, each line
 * of text and each drawing where it stands, with the colors and the fonts that it has at that
 * moment. The file has no style sheet and no HTML, so that Inkscape and other programs that know
 * nothing of CSS show it as a browser does. A text stays a text, whose `textLength` keeps its place
 * where another font stands in. What only hands need, such as "Reset", is left out.
 */
import { element } from "./markup.js";

const LEFT_OUT = ".buttons, .message, .visually-hidden, [popover], details:not([open])";
const MARGIN = 16; // pixels around the picture
const SCALE = 2; // pixels of a PNG for each one on the screen
// Names that only this page knows, and what other programs know instead.
const FONTS = [
  ["system-ui", 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", Arial'],
  ['"Text of the Book"', '"Source Serif 4", Georgia, "DejaVu Serif"'],
  [/(?<=^|, )monospace/, '"DejaVu Sans Mono", monospace'],
  [/(?<=^|, )serif/, '"DejaVu Serif", serif'],
  [/"\w+ in its place", /g, ""],
];
const COPIED = "d points x y x1 y1 x2 y2 cx cy r rx ry width height dx dy rotate pathLength".split(
  " ",
);
// What an element of a drawing has from its parent unless it says otherwise, and at the start.
const INHERITED = {
  fill: "#000000",
  "fill-opacity": "1",
  "fill-rule": "nonzero",
  stroke: "none",
  "stroke-opacity": "1",
  "stroke-width": "1px",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  "font-family": "",
  "font-size": "",
  "font-weight": "400",
  "font-style": "normal",
  "text-anchor": "start",
  "letter-spacing": "normal",
  "paint-order": "normal",
  "shape-rendering": "auto",
};
const OWN = {
  opacity: "1",
  "dominant-baseline": "auto",
  "baseline-shift": "0px",
  "vector-effect": "none",
  "text-decoration-line": "none",
};

/** A text without the characters that XML forbids. */
const clean = (text) =>
  text.toWellFormed().replace(/[^\t\n\r\u0020-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd");
const near = (x) => Number(x.toFixed(4));
const written = ({ a, b, c, d, e, f }) => `matrix(${[a, b, c, d, e, f].map(near).join(" ")})`;
const px = (text) => parseFloat(text) || 0;
const families = (text) => FONTS.reduce((all, [ours, theirs]) => all.replace(ours, theirs), text);
/** The parts of a list in CSS, whose parts may hold commas in parentheses. */
const listed = (text) => text.split(/,\s*(?![^(]*\))/);

/** One pixel, which knows what each color of CSS looks like; and the sizes of each font. */
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const colors = new Map();

/** A color of CSS as the two attributes that every program reads: {color, opacity}. */
function paint(css) {
  if (!colors.has(css)) {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = css;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, alpha] = pen.getImageData(0, 0, 1, 1).data;
    const color = `#${[r, g, b].map((x) => x.toString(16).padStart(2, "0")).join("")}`;
    colors.set(css, { color, opacity: alpha / 255 });
  }
  return colors.get(css);
}

const filled = (css, { color, opacity } = paint(css)) => ({
  fill: color,
  "fill-opacity": opacity < 1 && near(opacity),
});
const stroked = (css, width, { color, opacity } = paint(css)) => ({
  fill: "none",
  stroke: color,
  "stroke-opacity": opacity < 1 && near(opacity),
  "stroke-width": width,
});

/** How the letters of an element look, as attributes; `usual` is what the whole file says. */
function lettering(style, usual) {
  const all = {
    "font-family": families(style.fontFamily),
    "font-size": style.fontSize,
    "font-weight": style.fontWeight,
    "font-style": style.fontStyle,
  };
  const differs = Object.entries(all).filter(([name, value]) => value !== usual[name]);
  const numerals = style.fontVariantNumeric;
  return {
    ...Object.fromEntries(differs),
    ...filled(style.color),
    "text-decoration": style.textDecorationLine !== "none" && style.textDecorationLine,
    style: numerals !== "normal" && `font-variant-numeric: ${numerals}`,
  };
}

/** How far letters reach above the line, below it, and along it. */
function measured(style, text = "") {
  pen.font = `${style.fontStyle} ${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const { fontBoundingBoxAscent, fontBoundingBoxDescent, width } = pen.measureText(text);
  return {
    above: Math.round(fontBoundingBoxAscent),
    below: Math.round(fontBoundingBoxDescent),
    width,
  };
}

/** What is written so far, how far it reaches, and what it may not leave. */
class Sheet {
  constructor(root) {
    const style = getComputedStyle(root);
    this.parts = [];
    this.ids = 0;
    this.reach = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    this.window = { left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity };
    this.turned = false;
    this.usual = {
      "font-family": families(style.fontFamily),
      "font-size": style.fontSize,
      "font-weight": "400",
      "font-style": "normal",
    };
    this.color = (role) => style.getPropertyValue(`--${role}`);
  }
  add(tag, all, ...content) {
    this.parts.push(element(tag, all, ...content));
  }
  /** Grows the sheet by a box on the screen, as far as it can be seen. */
  grow({ left, top, right, bottom }) {
    const [all, seen] = [this.reach, this.window];
    if (this.turned || right <= seen.left || left >= seen.right) return;
    if (bottom <= seen.top || top >= seen.bottom) return;
    all.left = Math.min(all.left, Math.max(left, seen.left));
    all.top = Math.min(all.top, Math.max(top, seen.top));
    all.right = Math.max(all.right, Math.min(right, seen.right));
    all.bottom = Math.max(all.bottom, Math.min(bottom, seen.bottom));
  }
  /** A group of what `draw` adds; nothing if that is nothing. */
  group(all, draw) {
    const outer = this.parts;
    this.parts = [];
    draw();
    const inner = this.parts;
    this.parts = outer;
    if (inner.length) this.add("g", all, inner);
  }
  /** What `draw` adds, as far as it is seen through this box. */
  cut(box, draw) {
    const outer = this.window;
    const id = `window-${++this.ids}`;
    this.window = {
      left: Math.max(outer.left, box.left),
      top: Math.max(outer.top, box.top),
      right: Math.min(outer.right, box.right),
      bottom: Math.min(outer.bottom, box.bottom),
    };
    this.group({ "clip-path": `url(#${id})` }, () => {
      const { left: x, top: y, width, height } = box;
      this.add("clipPath", { id }, element("rect", { x, y, width, height }));
      draw();
    });
    this.window = outer;
  }
}

// ------------------------------------------------------------------------------------ boxes

/** A box whose sides lie so far inside of it, with rounded corners. */
function rounded({ left, top, width, height }, radii, inside, all) {
  const [x, y, wide, high] = [left + inside, top + inside, width - 2 * inside, height - 2 * inside];
  const most = Math.min(wide, high) / 2;
  const [a, b, c, d] = radii.map((radius) => Math.max(0, Math.min(radius - inside, most)));
  if (wide <= 0 || high <= 0) return "";
  if (a === b && b === c && c === d)
    return element("rect", { x, y, width: wide, height: high, rx: a || false, ...all });
  const corner = (radius, toX, toY) => `A${radius} ${radius} 0 0 1 ${near(toX)} ${near(toY)}`;
  const [right, low] = [x + wide, y + high];
  const path =
    `M${x + a} ${y}H${right - b}${corner(b, right, y + b)}V${low - c}${corner(c, right - c, low)}` +
    `H${x + d}${corner(d, x, low - d)}V${y + a}${corner(a, x + a, y)}Z`;
  return element("path", { d: path, ...all });
}

/** A linear gradient of CSS as one of SVG, or nothing if it is another image. */
function gradient(sheet, image, { left, top, width, height }) {
  const [, repeats, inner] = /^(repeating-)?linear-gradient\((.*)\)$/s.exec(image) ?? [];
  if (!inner) return null;
  const [first, ...rest] = listed(inner);
  const angle = first.endsWith("deg") ? (px(first) * Math.PI) / 180 : Math.PI;
  const [across, down] = [Math.sin(angle), -Math.cos(angle)];
  const length = Math.abs(width * across) + Math.abs(height * down);
  const stops = (first.endsWith("deg") ? rest : [first, ...rest]).flatMap((stop) => {
    const [, color, places] = /^(.*?)((?:\s-?[\d.]+(?:px|%))*)$/s.exec(stop);
    const at = (place) => (place.endsWith("%") ? (px(place) * length) / 100 : px(place));
    return places.trim()
      ? places
          .trim()
          .split(/\s+/)
          .map((place) => [color, at(place)])
      : [];
  });
  if (stops.length < 2) return null;
  const [from, to] = [stops[0][1], stops.at(-1)[1]];
  const along = (at) => [
    left + width / 2 + across * (at - length / 2),
    top + height / 2 + down * (at - length / 2),
  ];
  const [[x1, y1], [x2, y2]] = [along(from), along(to)];
  const id = `gradient-${++sheet.ids}`;
  const spreadMethod = repeats ? "repeat" : "pad";
  sheet.add(
    "linearGradient",
    { id, gradientUnits: "userSpaceOnUse", x1, y1, x2, y2, spreadMethod },
    stops.map(([color, at]) => {
      const { color: hex, opacity } = paint(color);
      const offset = near((at - from) / (to - from || 1));
      return element("stop", {
        offset: String(offset),
        "stop-color": hex,
        "stop-opacity": opacity,
      });
    }),
  );
  return `url(#${id})`;
}

/** The ground of an element, its edges and its rings. */
function drawBox(sheet, style, box, node = {}) {
  if (!box.width || !box.height) return;
  const sides = ["Top", "Right", "Bottom", "Left"];
  const corners = ["TopLeft", "TopRight", "BottomRight", "BottomLeft"];
  const radii = corners.map((corner) => {
    const radius = style[`border${corner}Radius`];
    return radius.includes("%") ? (px(radius) * box.width) / 100 : px(radius);
  });
  const put = (inside, all) => {
    sheet.parts.push(rounded(box, radii, inside, all));
    sheet.grow(box);
  };
  if (paint(style.backgroundColor).opacity) put(0, filled(style.backgroundColor));
  const fill = style.backgroundImage !== "none" && gradient(sheet, style.backgroundImage, box);
  if (fill) put(0, { fill });
  for (const shadow of style.boxShadow === "none" ? [] : listed(style.boxShadow)) {
    const [, color] = /^(.*?\)|\w+)\s/.exec(shadow);
    const [, , blur, spread] = shadow
      .slice(color.length)
      .match(/-?[\d.]+px/g)
      .map(px);
    if (blur || !spread) continue; // a soft shadow says nothing
    const inner = px(style.borderTopWidth) + spread / 2;
    put(shadow.endsWith("inset") ? inner : -spread / 2, stroked(color, spread));
  }
  const [ring, apart] = [px(style.outlineWidth), px(style.outlineOffset)];
  if (style.outlineStyle !== "none" && ring && !node.matches?.(":focus-visible"))
    put(-apart - ring / 2, stroked(style.outlineColor, ring));
  const edges = sides.map((side) => {
    const [width, kind, color] = ["Width", "Style", "Color"].map(
      (part) => style[`border${side}${part}`],
    );
    const seen = px(width) && !/none|hidden/.test(kind) && paint(color).opacity > 0;
    return seen ? { width: px(width), color, kind } : null;
  });
  const dashes = ({ kind, width }) =>
    ({
      dashed: { "stroke-dasharray": `${3 * width} ${2 * width}` },
      dotted: { "stroke-dasharray": `${width} ${width}` },
    })[kind];
  const [one] = edges;
  if (edges.every((edge) => edge && JSON.stringify(edge) === JSON.stringify(one))) {
    put(one.width / 2, { ...stroked(one.color, one.width), ...dashes(one) });
    return;
  }
  edges.forEach((edge, i) => {
    if (!edge) return;
    const half = edge.width / 2;
    const { left, top, right, bottom } = box;
    const d = [
      `M${left} ${top + half}H${right}`,
      `M${right - half} ${top}V${bottom}`,
      `M${left} ${bottom - half}H${right}`,
      `M${left + half} ${top}V${bottom}`,
    ][i];
    sheet.add("path", { d, ...stroked(edge.color, edge.width), ...dashes(edge) });
    sheet.grow(box);
  });
}

// ------------------------------------------------------------------------------------ texts

/** One line of text whose box on the screen is this one. */
function drawLine(sheet, text, style, box) {
  const cased = { uppercase: text.toUpperCase(), lowercase: text.toLowerCase() };
  const said = clean(cased[style.textTransform] ?? text);
  const { above, below } = measured(style);
  const all = { ...lettering(style, sheet.usual), lengthAdjust: "spacingAndGlyphs" };
  const upright = style.writingMode.startsWith("horizontal");
  const place = upright
    ? { x: box.left, y: box.top + above, textLength: box.width }
    : {
        transform: `translate(${near(box.left + below)} ${near(box.top)}) rotate(90)`,
        textLength: box.height,
      };
  sheet.add("text", { ...place, ...all }, said);
  sheet.grow(box);
}

/** The lines of a text on the screen: its words, put together while they stand side by side. */
function drawText(sheet, node, style) {
  const range = document.createRange();
  const lines = [];
  const upright = style.writingMode.startsWith("horizontal");
  const visit = (start, end) => {
    range.setStart(node, start);
    range.setEnd(node, end);
    const boxes = Array.from(range.getClientRects()).filter(({ width, height }) => width && height);
    if (boxes.length > 1 && end - start > 1) {
      const letters = Array.from(node.data.slice(start, end)); // a word over two lines
      for (const letter of letters) visit(start, (start += letter.length));
      return;
    }
    const [box] = boxes;
    if (!box) return;
    const last = lines.at(-1);
    if (last && upright && Math.abs(last.box.top - box.top) < 1 && box.left > last.box.left) {
      const { left, top, height } = last.box;
      Object.assign(last, { end, box: new DOMRect(left, top, box.right - left, height) });
    } else lines.push({ start, end, box });
  };
  for (const { index, 0: word } of node.data.matchAll(/\S+/g)) visit(index, index + word.length);
  const kept = style.whiteSpace.startsWith("pre");
  for (const { start, end, box } of lines) {
    const text = node.data.slice(start, end);
    drawLine(
      sheet,
      text.replace(/\s+/g, kept ? (gap) => "\u00a0".repeat(gap.length) : " "),
      style,
      box,
    );
  }
}

/** What ::before or ::after puts there: a box that is placed, or a sign beside the text. */
function drawAdded(sheet, owner, which) {
  const style = getComputedStyle(owner, which);
  const quote = { "open-quote": "“", "close-quote": "”" }[style.content];
  const said = quote ?? /^"(.*?)"/.exec(style.content)?.[1];
  if (said === undefined || style.display === "none") return;
  const box = owner.getBoundingClientRect();
  const edge = getComputedStyle(owner);
  const { above, below, width } = measured(style, said);
  let [left, top] = [box.left + px(edge.borderLeftWidth), box.top + px(edge.borderTopWidth)];
  if (style.position === "absolute") {
    const moved = new DOMMatrix(style.transform === "none" ? "" : style.transform);
    left += px(style.left) + moved.e;
    top += (style.top === "auto" ? px(edge.paddingTop) : px(style.top)) + moved.f;
    drawBox(sheet, style, new DOMRect(left, top, px(style.width), px(style.height)));
  } else if (said) {
    const range = document.createRange();
    range.selectNodeContents(owner);
    const inner = range.getBoundingClientRect();
    left = which === "::before" ? inner.left - width : inner.right;
    if (!inner.width) left = box.left + (box.width - width) / 2;
    top = inner.height ? inner.top : box.top + (box.height - above - below) / 2;
  }
  const high = style.position === "absolute" ? px(style.height) - above - below : 0;
  if (said.trim())
    drawLine(sheet, said, style, new DOMRect(left, top + high / 2, width, above + below));
}

// --------------------------------------------------------------------------------- controls

/** What the browser itself draws of a control. */
function drawControl(sheet, control, style, box) {
  const [ink, line] = [sheet.color("ink"), sheet.color("line")];
  const { left, top, width, height } = box;
  const middle = top + height / 2;
  if (control.type === "range" || control.localName === "progress") {
    const { min = 0, max, value } = control;
    const thumb = control.type === "range" ? 8 : 0;
    const x = left + thumb + ((value - min) / (max - min || 1)) * (width - 2 * thumb);
    const track = { x: left, y: middle - 2, height: 4, rx: 2 };
    sheet.add("rect", { ...track, width, ...filled(line), "fill-opacity": 0.4 });
    const color = filled(control.disabled ? line : ink);
    sheet.add("rect", { ...track, width: Math.max(x - left, 0), ...color });
    if (thumb) sheet.add("circle", { cx: x, cy: middle, r: thumb, ...color });
    sheet.grow(box);
  } else if (control.type === "checkbox" || control.type === "radio") {
    const round = control.type === "radio" ? width / 2 : 2;
    const all = control.checked ? filled(ink) : stroked(line, 1);
    sheet.parts.push(rounded(box, Array(4).fill(round), control.checked ? 0 : 0.5, all));
    const start = `M${left + width * 0.22} ${middle}`;
    const d = `${start}l${width * 0.2} ${height * 0.2}l${width * 0.36} ${-height * 0.4}`;
    const dot = { cx: left + width / 2, cy: middle, r: width / 5, ...filled(sheet.color("page")) };
    if (control.checked && round > 2) sheet.add("circle", dot);
    else if (control.checked) sheet.add("path", { d, ...stroked(sheet.color("page"), 2) });
    sheet.grow(box);
  } else {
    const chosen =
      control.selectedOptions?.[0]?.textContent ?? (control.value || control.placeholder);
    const [from, to] = ["Left", "Right"].map(
      (side) => px(style[`border${side}Width`]) + px(style[`padding${side}`]),
    );
    const arrow = control.localName === "select" ? 14 : 0;
    const room = width - from - to - arrow;
    sheet.cut(new DOMRect(left + from, top, room, height), () => {
      control.value.split("\n").forEach((_, i, all) => {
        const text = all.length > 1 ? all[i] : chosen.trim();
        const { above, below, width: wide } = measured(style, text);
        const free = Math.max(room - wide, 0);
        const x =
          left + from + ({ center: free / 2, right: free, end: free }[style.textAlign] ?? 0);
        const tall = px(style.lineHeight) || 1.2 * px(style.fontSize);
        const y =
          all.length > 1 ? top + px(style.paddingTop) + i * tall : middle - (above + below) / 2;
        if (text) drawLine(sheet, text, style, new DOMRect(x, y, wide, above + below));
      });
    });
    if (arrow)
      sheet.add("path", {
        d: `M${left + width - 16} ${middle - 2}l4 4l4 -4`,
        ...stroked(style.color, 1.5),
      });
  }
}

// --------------------------------------------------------------------------------- drawings

/** What an element of a drawing looks like: attributes where it differs from `from`. */
function look(style, from) {
  const now = {};
  for (const name of Object.keys(INHERITED)) now[name] = style.getPropertyValue(name);
  for (const name of ["fill", "stroke"]) {
    if (now[name] === "none") continue;
    const { color, opacity } = paint(now[name]);
    now[name] = color;
    now[`${name}-opacity`] = String(near(now[`${name}-opacity`] * opacity));
  }
  now["font-family"] = families(now["font-family"]);
  const own = Object.keys(OWN)
    .map((name) => [name, style.getPropertyValue(name)])
    .filter(([name, value]) => value !== OWN[name]);
  const differs = Object.entries(now).filter(([name, value]) => value !== from[name]);
  return { now, all: Object.fromEntries([...differs, ...own]) };
}

/** A path as it looks in another plane, in commands that say where they go; null for arcs. */
function moved(d, matrix) {
  if (!/^[MLHVCQSTZ\d\s.,-]*$/i.test(d)) return null;
  const SIZES = { M: 2, L: 2, H: 1, V: 1, C: 6, Q: 4, S: 4, T: 2 };
  let [x, y, startX, startY] = [0, 0, 0, 0];
  let path = "";
  for (const [, sign, rest] of d.matchAll(/([a-z])([^a-z]*)/gi)) {
    const numbers = rest.match(/-?(?:\d+\.?\d*|\.\d+)/g)?.map(Number) ?? [];
    const command = sign.toUpperCase();
    if (command === "Z") {
      path += "Z";
      [x, y] = [startX, startY];
    }
    for (let at = 0; at < numbers.length; at += SIZES[command]) {
      let part = numbers.slice(at, at + SIZES[command]);
      const [fromX, fromY] = sign === command ? [0, 0] : [x, y];
      if (command === "H") part = [part[0] + fromX, y];
      else if (command === "V") part = [x, part[0] + fromY];
      else part = part.map((number, i) => number + (i % 2 ? fromY : fromX));
      const starts = command === "M" && at === 0;
      path += starts ? "M" : "HVM".includes(command) ? "L" : command;
      for (let i = 0; i < part.length; i += 2) {
        const point = new DOMPoint(part[i], part[i + 1]).matrixTransform(matrix);
        path += `${near(point.x)} ${near(point.y)} `;
      }
      [x, y] = part.slice(-2);
      if (starts) [startX, startY] = [x, y];
    }
  }
  return path;
}

/** The letters of a <text> or a <tspan>, and those inside of it. */
function spans(node, from, parts = node.childNodes.length > 1) {
  return Array.from(node.childNodes, (child) => {
    // A space at the end of a part of a line: not each program keeps it.
    if (child.nodeType === Node.TEXT_NODE)
      return clean(child.data.replace(/\s+/g, " ")).replace(/^ | $/g, parts ? "\u00a0" : "");
    if (child.nodeType !== Node.ELEMENT_NODE || !child.checkVisibility()) return "";
    const { now, all } = look(getComputedStyle(child), from);
    return element("tspan", { ...copied(child), ...all }, spans(child, now, true));
  });
}

const copied = (node) =>
  Object.fromEntries(
    COPIED.filter((name) => node.hasAttribute(name)).map((name) => [name, node.getAttribute(name)]),
  );

function drawShape(sheet, node, from) {
  const style = getComputedStyle(node);
  if (
    !node.checkVisibility({ visibilityProperty: true }) ||
    /^(title|desc|defs)$/.test(node.localName)
  )
    return;
  if (/^(g|a|svg)$/.test(node.localName)) {
    const opacity = style.opacity !== "1" && style.opacity;
    const draw = () => {
      for (const child of node.children) drawShape(sheet, child, from);
    };
    if (opacity) sheet.group({ opacity }, draw);
    else draw();
    return;
  }
  const { now, all } = look(style, from);
  const matrix = node.getScreenCTM();
  const own = copied(node);
  const still =
    style.vectorEffect === "non-scaling-stroke" &&
    node.localName === "path" &&
    moved(own.d, matrix);
  const box = node.getBoundingClientRect();
  if (style.opacity === "0" || (now.fill === "none" && now.stroke === "none")) return;
  if (still) {
    delete all["vector-effect"];
    sheet.add("path", { ...all, d: still });
  } else if (node.localName === "text") {
    const plain =
      !node.children.length && node.textContent.trim() && style.letterSpacing === "normal";
    const length = plain && {
      textLength: node.getComputedTextLength(),
      lengthAdjust: "spacingAndGlyphs",
    };
    sheet.add("text", { ...own, ...length, ...all, transform: written(matrix) }, spans(node, now));
  } else sheet.add(node.localName, { ...own, ...all, transform: written(matrix) });
  sheet.grow(box);
}

function drawSvg(sheet, svg, style) {
  const from = { ...INHERITED, ...sheet.usual };
  const draw = () => drawShape(sheet, svg, from);
  if (style.overflow === "visible") draw();
  else sheet.cut(svg.getBoundingClientRect(), draw);
}

// --------------------------------------------------------------------------------- the walk

/** How near to the reader a part lies: what lies above is drawn later. */
function layer(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return 0;
  const { position, zIndex } = getComputedStyle(node);
  return position === "static" ? 0 : Number(zIndex) || 0;
}

function walk(sheet, node) {
  const style = getComputedStyle(node);
  const hidden = style.display !== "contents" && !node.checkVisibility();
  if (node.matches(LEFT_OUT) || hidden || style.opacity === "0") return;
  const { a, b, c, d } = new DOMMatrix(style.transform === "none" ? "" : style.transform);
  if ((b || c || a < 0 || d < 0) && !sheet.turned) return turned(sheet, node, style);
  if (style.opacity !== "1")
    return sheet.group({ opacity: style.opacity }, () => inside(sheet, node, style));
  return a * d !== 0 && inside(sheet, node, style);
}

function inside(sheet, node, style) {
  const box = node.getBoundingClientRect();
  const seen = style.visibility === "visible";
  // Of these the browser draws no box, whatever their style says.
  const boxed = !node.matches("[type=range], [type=checkbox], [type=radio], progress");
  if (seen && boxed) drawBox(sheet, style, box, node);
  if (node.localName === "svg") return drawSvg(sheet, node, style);
  if (seen && node.matches("input, select, textarea, progress"))
    return drawControl(sheet, node, style, box);
  const children = Array.from(node.childNodes).sort((one, other) => layer(one) - layer(other));
  const draw = () => {
    if (seen) drawAdded(sheet, node, "::before");
    for (const child of children) {
      if (child.nodeType === Node.TEXT_NODE) seen && drawText(sheet, child, style);
      else if (child.nodeType === Node.ELEMENT_NODE) walk(sheet, child);
    }
    if (seen) drawAdded(sheet, node, "::after");
  };
  const scrolls =
    node.scrollWidth > node.clientWidth + 1 || node.scrollHeight > node.clientHeight + 1;
  if (scrolls && style.overflow !== "visible" && style.display !== "inline") sheet.cut(box, draw);
  else draw();
}

/** A part that is turned: it is drawn as it would stand upright, and turned in the file. */
function turned(sheet, node, style) {
  const matrix = new DOMMatrix(style.transform);
  const [x, y] = style.transformOrigin.split(" ").map(px);
  const kept = node.getAttribute("style");
  sheet.grow(node.getBoundingClientRect());
  sheet.turned = true;
  node.style.setProperty("transition", "none", "important");
  node.style.setProperty("transform", "none", "important");
  const { left, top } = node.getBoundingClientRect();
  const around = new DOMMatrix()
    .translate(left + x, top + y)
    .multiply(matrix)
    .translate(-left - x, -top - y);
  sheet.group({ transform: written(around) }, () => inside(sheet, node, getComputedStyle(node)));
  sheet.turned = false;
  if (kept === null) node.removeAttribute("style");
  else node.setAttribute("style", kept);
}

// ---------------------------------------------------------------------------------- the file

/** A text in lines of at most this width. */
function wrapped(text, style, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (measured(style, longer).width <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.filter(Boolean);
}

/** A text that ends in "…" where it is wider than this. */
function shortened(text, style, width) {
  if (measured(style, text).width <= width) return text;
  let end = text.length;
  while (end && measured(style, `${text.slice(0, end)}…`).width > width)
    end = Math.floor(end * 0.95);
  return `${text.slice(0, end)}…`;
}

/**
 * What the widget in `root` shows, as the text of an SVG file; below it stand the caption and, if
 * there is one, the address at which it can be used.
 */
export function toSvg(root, { caption, address = "" }) {
  const sheet = new Sheet(root);
  for (const child of root.querySelector("fieldset").children) walk(sheet, child);
  const { reach } = sheet;
  const [left, top] = [Math.floor(reach.left) - MARGIN, Math.floor(reach.top) - MARGIN];
  const width = Math.ceil(reach.right) + MARGIN - left;
  const { fontFamily } = getComputedStyle(root);
  const small = { fontFamily, fontSize: "12px", fontStyle: "normal", fontWeight: "400" };
  let y = Math.ceil(reach.bottom) + MARGIN;
  const below = (text, role, link) => {
    const { above, below: under, width: wide } = measured(small, text);
    const all = {
      x: left + MARGIN,
      y: y + above,
      "font-size": "12px",
      ...filled(sheet.color(role)),
    };
    const line = element(
      "text",
      { ...all, textLength: wide, lengthAdjust: "spacingAndGlyphs" },
      clean(text),
    );
    sheet.parts.push(
      link ? element("a", { href: clean(link), "xlink:href": clean(link) }, line) : line,
    );
    y += above + under + 2;
  };
  const room = width - 2 * MARGIN;
  for (const line of wrapped(caption, small, room)) below(line, "ink");
  const link = /^https?:/.test(address) ? address : "";
  if (address) below(shortened(address, small, room), "muted", link);
  const height = y + MARGIN - 2 - top;
  const ground = { x: left, y: top, width, height, ...filled(sheet.color("page")) };
  const svg = element(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg",
      "xmlns:xlink": "http://www.w3.org/1999/xlink",
      width,
      height,
      viewBox: `${left} ${top} ${width} ${height}`,
      role: "img",
      ...sheet.usual,
    },
    element("title", {}, clean(caption)),
    element("rect", ground),
    sheet.parts,
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${svg}\n`;
}

/** The same as a PNG: a promise of a Blob. */
export async function toPng(svg) {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * picture.naturalWidth;
  canvas.height = SCALE * picture.naturalHeight;
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
