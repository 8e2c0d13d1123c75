/**
 * The scene "coins": a query and a key of four coins, their products, and the 16 ways to a score.
 */
import { buttons, element, html, sheet, text } from "../kit/markup.js";

const PLACES = [0, 1, 2, 3];
const ORDINALS = ["first", "second", "third", "fourth"];
/** A tile shows four products; a column has those tiles whose sum is the same. */
const TILE = { wide: 58, high: 16, left: 34, step: 66, floor: 136 };

const sign = (x) => (x > 0 ? "+1" : "−1");
const coin = (bits, at) => ((bits >> at) & 1 ? 1 : -1);

/** The numbers of query and key, their products, and the score. */
function compute({ coins }) {
  const query = PLACES.map((c) => coin(coins, c));
  const key = PLACES.map((c) => coin(coins, 4 + c));
  const products = PLACES.map((c) => query[c] * key[c]);
  return { query, key, products, score: products.reduce((sum, product) => sum + product) };
}

/** The 16 possible results of four products, in columns from -4 to 4. */
function tiles(products) {
  const columns = new Map();
  return Array.from({ length: 16 }, (_, bits) => {
    const way = PLACES.map((c) => coin(bits, c));
    const score = way.reduce((sum, product) => sum + product);
    const row = (columns.get(score) ?? 0) + 1;
    columns.set(score, row);
    const x = TILE.left + (score / 2 + 2) * TILE.step - TILE.wide / 2;
    return { way, x, y: TILE.floor - 20 * row, here: way.every((each, c) => each === products[c]) };
  });
}

function drawing({ products, score }) {
  const at = (sum) => TILE.left + (sum / 2 + 2) * TILE.step;
  const centered = { "text-anchor": "middle" };
  return sheet(
    "sheet",
    332,
    176,
    "The 16 possible results of four products: one with the score −4, four with −2, " +
      `six with 0, four with 2, one with 4. The coins above make the score ${score}.`,
    tiles(products).map(({ way, x, y, here }) => [
      element("rect", {
        x,
        y,
        width: TILE.wide,
        height: TILE.high,
        rx: 3,
        fill: here ? "var(--ink)" : "none",
        stroke: here ? "var(--ink)" : "var(--line)",
      }),
      way.map((product, c) =>
        text(product > 0 ? "+" : "−", x + 10 + 12.7 * c, y + 12, here ? "page" : "muted", centered),
      ),
    ]),
    [-4, -2, 0, 2, 4].map((sum) =>
      text(String(sum).replace("-", "−"), at(sum), TILE.floor + 18, "ink", {
        ...centered,
        "font-weight": sum === score ? 700 : 400,
      }),
    ),
    text("score", at(0), TILE.floor + 36, "muted", centered),
  );
}

function picture(s) {
  const found = compute(s);
  const row = (role, numbers, from) =>
    html`<tr><th scope="row" class="${role}">${role}</th>${numbers.map(
      (number, c) =>
        html`<td>${element(
          "button",
          {
            type: "button",
            name: "coin",
            class: role,
            value: from + c,
            "aria-label": `${sign(number)}, ${ORDINALS[c]} number of the ${role}: turn it`,
          },
          sign(number),
        )}</td>`,
    )}<td></td></tr>`;
  const sum = found.products.map((product, c) =>
    c ? ` ${product > 0 ? "+" : "−"} 1` : sign(product),
  );
  return [
    html`<div class="tossed"><p class="task">Turn a coin, and watch its product and the score.</p>
<table data-part="table">${row("query", found.query, 0)}${row("key", found.key, 4)}
<tr><th scope="row">product</th>${found.products.map(
      (product) => html`<td data-part="product">${sign(product)}</td>`,
    )}<td></td></tr></table>
<p role="status">score = ${sum} =
<b data-part="score">${String(found.score).replace("-", "−")}</b></p>
${buttons()}</div>`,
    html`<div class="picture tiles"><p>All 16 possible results of four products</p>
${drawing(found)}</div>`,
  ];
}

function code(s) {
  const { query, key } = compute(s);
  return [
    "import numpy as np",
    "",
    `query = np.array([${query.join(", ")}])`,
    `key = np.array([${key.join(", ")}])`,
    "products = query * key",
    "score = products.sum()",
    'print("products:", products, "score:", score)',
  ];
}

function live(view) {
  view.on("coin", "click", (_, { value }) =>
    view.set({ coins: view.state().coins ^ (1 << Number(value)) }),
  );
}

export const coins = { label: "a score of four coins", compute, picture, code, live };
