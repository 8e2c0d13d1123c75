/**
 * The small GPT of the chapter while it learns: forward pass, backpropagation and AdamW by hand,
 * and the random sentences on which it trains.
 *
 * A worker runs the text of this function, so nothing outside of it is used. All numbers lie in
 * one Float32Array, the heap; an array is the place in the heap where it begins. A step goes
 * through one sentence after the other.
 */

/**
 * A model with random weights, and what trains it. `module` is kernel.wat compiled, or null for
 * plain JavaScript. `settings`, all needed but `batch`:
 *   seed                     of the weights and the sentences
 *   layers, heads            1 or 2, and heads of each layer: 1 or 2
 *   rate, steps              the largest learning rate, and the length of its schedule
 *   residual, positions, causal  whether the model has them
 *   task                     "last": say what followed the same letter the last time; "next": say
 *                            the next letter of a sentence that repeats itself
 *   batch                    sentences in a step
 */
export function makeLearner(settings, module = null) {
  const { layers, heads, seed, rate, steps, residual, positions, causal, task } = settings;
  const { batch = 16 } = settings;
  const [LETTERS, LENGTH, WIDTH, HIDDEN] = [16, 24, 32, 32];
  const QKV = 3 * WIDTH;
  const size = WIDTH / heads; // of a query, a key or a value
  const scale = 1 / Math.sqrt(size);
  const EPS = 1e-5; // of a norm
  const [BETA_1, BETA_2, DECAY, CLIP, WARM_UP] = [0.9, 0.999, 0.1, 1, 0.1];
  // Embeddings begin half as large as torch's, so that positions are seen early. It learns sooner.
  const EMBEDDING = 0.5;

  // ------------------------------------------------------------------ where everything lies

  const shapes = [["embedding", LETTERS, WIDTH]];
  for (let l = 0; l < layers; l++) {
    const own = [
      ["gamma_1", WIDTH],
      ["beta_1", WIDTH],
      ["w_qkv", WIDTH, QKV],
      ["b_qkv", QKV],
      ["w_o", WIDTH, WIDTH],
      ["b_o", WIDTH],
      ["gamma_2", WIDTH],
      ["beta_2", WIDTH],
      ["w_1", WIDTH, HIDDEN],
      ["b_1", HIDDEN],
      ["w_2", HIDDEN, WIDTH],
      ["b_2", WIDTH],
    ];
    for (const [name, ...shape] of own) shapes.push([`${l}.${name}`, ...shape]);
  }
  shapes.push(["gamma", WIDTH], ["beta", WIDTH], ["w_out", WIDTH, LETTERS], ["b_out", LETTERS]);
  let used = 0;
  const take = (count) => {
    const place = used;
    used += (count + 3) & ~3;
    return place;
  };
  const sizes = shapes.map(([, rows, columns = 1]) => rows * columns);
  const count = sizes.reduce((sum, each) => sum + each, 0);
  const zeros = take(QKV);
  const [W, G, MEAN, SQUARE, TURNED] = Array.from({ length: 5 }, () => take(count));
  const at = {}; // the place of each array among the weights
  shapes.reduce((place, [name], i) => {
    at[name] = place;
    return place + sizes[i];
  }, 0);
  const places = Array.from({ length: layers }, (_, l) => {
    const own = shapes.map(([name]) => name).filter((name) => name.startsWith(`${l}.`));
    return Object.fromEntries(own.map((name) => [name.split(".")[1], at[name]]));
  });
  const CLOCKS = take(LENGTH * WIDTH); // the positions
  // What the backward pass needs of each layer.
  const kept = Array.from({ length: layers }, () => ({
    x: take(LENGTH * WIDTH),
    hat_1: take(LENGTH * WIDTH),
    h_1: take(LENGTH * WIDTH),
    by_1: take(LENGTH),
    qkv: take(LENGTH * QKV),
    turned: take(2 * WIDTH * LENGTH), // keys and values, transposed
    a: take(heads * LENGTH * LENGTH),
    o: take(LENGTH * WIDTH), // the outputs of the heads, side by side
    between: take(LENGTH * WIDTH),
    hat_2: take(LENGTH * WIDTH),
    h_2: take(LENGTH * WIDTH),
    by_2: take(LENGTH),
    f: take(LENGTH * HIDDEN),
  }));
  const end = {
    x: take(LENGTH * WIDTH),
    hat: take(LENGTH * WIDTH),
    h: take(LENGTH * WIDTH),
    by: take(LENGTH),
    logits: take(LENGTH * LETTERS),
  };
  const [dx, dh, df] = Array.from({ length: 3 }, () => take(LENGTH * WIDTH));
  const dqkv = take(LENGTH * QKV);
  const da = take(LENGTH * LENGTH);

  /** The product of kernel.wat, two rows and four columns at a time. */
  function plainProduct(
    out,
    outRow,
    start,
    startRow,
    a,
    aRow,
    aColumn,
    b,
    bRow,
    rows,
    cols,
    depth,
  ) {
    for (let i = 0; i < rows; i += 2) {
      for (let j = 0; j < cols; j += 4) {
        const [s, t] = [start + i * startRow + j, start + (i + 1) * startRow + j];
        let [x0, x1, x2, x3] = [heap[s], heap[s + 1], heap[s + 2], heap[s + 3]];
        let [y0, y1, y2, y3] = [heap[t], heap[t + 1], heap[t + 2], heap[t + 3]];
        let [p, q] = [a + i * aRow, b + j];
        for (let k = 0; k < depth; k++) {
          const u = heap[p];
          const v = heap[p + aRow];
          const b0 = heap[q];
          const b1 = heap[q + 1];
          const b2 = heap[q + 2];
          const b3 = heap[q + 3];
          x0 += u * b0;
          x1 += u * b1;
          x2 += u * b2;
          x3 += u * b3;
          y0 += v * b0;
          y1 += v * b1;
          y2 += v * b2;
          y3 += v * b3;
          p += aColumn;
          q += bRow;
        }
        const o = out + i * outRow + j;
        const next = o + outRow;
        heap[o] = x0;
        heap[o + 1] = x1;
        heap[o + 2] = x2;
        heap[o + 3] = x3;
        heap[next] = y0;
        heap[next + 1] = y1;
        heap[next + 2] = y2;
        heap[next + 3] = y3;
      }
    }
  }

  const memory = module && new WebAssembly.Memory({ initial: Math.ceil((4 * used) / 65536) });
  const heap = module ? new Float32Array(memory.buffer) : new Float32Array(used);
  const product = module
    ? new WebAssembly.Instance(module, { page: { memory } }).exports.product
    : plainProduct;
  const weights = heap.subarray(W, W + count);
  const gradient = heap.subarray(G, G + count);

  // ------------------------------------------------------------------------------- the start

  /** A function that gives numbers from 0 to 1, the same ones for the same seed everywhere. */
  function generator(state) {
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let bits = Math.imul(state ^ (state >>> 15), 1 | state);
      bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
      return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296;
    };
  }

  const random = generator(seed | 0);
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const uniform = (most) => most * (2 * random() - 1);

  /** The first value of an entry, as PyTorch chooses it. */
  function first(kind, rows, columns) {
    if (kind === "embedding") return EMBEDDING * normal();
    if (kind.startsWith("gamma")) return 1;
    if (kind === "w_qkv") return uniform(Math.sqrt(6 / (rows + columns)));
    if (columns) return uniform(1 / Math.sqrt(rows));
    // Biases of linear layers; those of attention and of norms begin at 0.
    return /^b_(1|2|out)$/.test(kind) ? uniform(1 / Math.sqrt(WIDTH)) : 0;
  }

  shapes.forEach(([name, rows, columns], i) => {
    const kind = name.split(".").pop();
    for (let k = 0; k < sizes[i]; k++) weights[at[name] + k] = first(kind, rows, columns);
  });
  for (let p = 0; positions && p < LENGTH; p++) {
    for (let k = 0; k < WIDTH; k++) {
      const angle = p / 10000 ** ((k - (k % 2)) / WIDTH);
      heap[CLOCKS + p * WIDTH + k] = k % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  }

  /** The transpose of a matrix whose rows lie `stride` apart. */
  function turn(from, to, rows, columns, stride) {
    for (let i = 0; i < rows; i++)
      for (let j = 0; j < columns; j++) heap[to + j * rows + i] = heap[from + i * stride + j];
  }

  const matrices = shapes.filter(([, , columns]) => columns).slice(1);
  function turnAll() {
    for (const [name, rows, columns] of matrices)
      turn(W + at[name], TURNED + at[name], rows, columns, columns);
  }
  turnAll();

  // ----------------------------------------------------------------------- the forward pass

  function norm(x, hat, h, by, gamma, beta) {
    for (let i = 0; i < LENGTH; i++) {
      const row = i * WIDTH;
      let mean = 0;
      let variance = 0;
      for (let k = 0; k < WIDTH; k++) mean += heap[x + row + k];
      mean /= WIDTH;
      for (let k = 0; k < WIDTH; k++) variance += (heap[x + row + k] - mean) ** 2;
      const factor = 1 / Math.sqrt(variance / WIDTH + EPS);
      heap[by + i] = factor;
      for (let k = 0; k < WIDTH; k++) {
        const each = (heap[x + row + k] - mean) * factor;
        heap[hat + row + k] = each;
        heap[h + row + k] = each * heap[W + gamma + k] + heap[W + beta + k];
      }
    }
  }

  /** Scores become weights, over the first `length` keys, and with the mask up to a row's own. */
  function softmax(a, length) {
    for (let i = 0; i < LENGTH; i++) {
      const row = a + i * LENGTH;
      const to = causal ? Math.min(i + 1, length) : length;
      let most = -Infinity;
      let sum = 0;
      for (let j = 0; j < to; j++) if (heap[row + j] > most) most = heap[row + j];
      for (let j = 0; j < to; j++) {
        const each = Math.exp(scale * (heap[row + j] - most));
        heap[row + j] = each;
        sum += each;
      }
      for (let j = 0; j < to; j++) heap[row + j] /= sum;
      for (let j = to; j < LENGTH; j++) heap[row + j] = 0;
    }
  }

  /** to = input W + b, and plus x where there are residual connections. */
  function added(to, x, input, depth, w, b) {
    for (let i = 0; i < LENGTH * WIDTH; i += WIDTH)
      for (let k = 0; k < WIDTH; k++)
        heap[to + i + k] = (residual ? heap[x + i + k] : 0) + heap[W + b + k];
    product(to, WIDTH, to, WIDTH, input, depth, 1, W + w, WIDTH, LENGTH, WIDTH, depth);
  }

  /** Reads the sentence that begins at `from` in `tokens`; heads in `off`, "layer,head", give 0. */
  function forward(tokens, from, length, off) {
    const start = kept[0].x;
    for (let i = 0; i < LENGTH; i++) {
      const row = W + at.embedding + tokens[from + i] * WIDTH;
      for (let k = 0; k < WIDTH; k++)
        heap[start + i * WIDTH + k] = heap[row + k] + heap[CLOCKS + i * WIDTH + k];
    }
    for (let l = 0; l < layers; l++) {
      const [own, w] = [kept[l], places[l]];
      norm(own.x, own.hat_1, own.h_1, own.by_1, w.gamma_1, w.beta_1);
      product(
        own.qkv,
        QKV,
        W + w.b_qkv,
        0,
        own.h_1,
        WIDTH,
        1,
        W + w.w_qkv,
        QKV,
        LENGTH,
        QKV,
        WIDTH,
      );
      turn(own.qkv + WIDTH, own.turned, LENGTH, 2 * WIDTH, QKV);
      for (let h = 0; h < heads; h++) {
        const a = own.a + h * LENGTH * LENGTH;
        const part = h * size;
        const keys = own.turned + part * LENGTH;
        product(a, LENGTH, zeros, 0, own.qkv + part, QKV, 1, keys, LENGTH, LENGTH, LENGTH, size);
        softmax(a, length);
        const values = own.qkv + 2 * WIDTH + part;
        product(own.o + part, WIDTH, zeros, 0, a, LENGTH, 1, values, QKV, LENGTH, size, LENGTH);
        if (off.length && off.includes(`${l},${h}`))
          for (let i = 0; i < LENGTH; i++)
            heap.fill(0, own.o + part + i * WIDTH, own.o + part + i * WIDTH + size);
      }
      added(own.between, own.x, own.o, WIDTH, w.w_o, w.b_o);
      norm(own.between, own.hat_2, own.h_2, own.by_2, w.gamma_2, w.beta_2);
      const hidden = [own.f, HIDDEN, W + w.b_1, 0, own.h_2, WIDTH, 1, W + w.w_1, HIDDEN];
      product(...hidden, LENGTH, HIDDEN, WIDTH);
      for (let k = 0; k < LENGTH * HIDDEN; k++) if (heap[own.f + k] < 0) heap[own.f + k] = 0;
      added(l + 1 < layers ? kept[l + 1].x : end.x, own.between, own.f, HIDDEN, w.w_2, w.b_2);
    }
    norm(end.x, end.hat, end.h, end.by, at.gamma, at.beta);
    const logits = [end.logits, LETTERS, W + at.b_out, 0, end.h, WIDTH, 1, W + at.w_out, LETTERS];
    product(...logits, LENGTH, LETTERS, WIDTH);
  }

  // ---------------------------------------------------------------------- the backward pass

  /** Through a norm: its gradients, and dx from dh; `adds` to what dx holds, or replaces it. */
  function normBack(hat, by, gamma, beta, adds) {
    for (let i = 0; i < LENGTH; i++) {
      const row = i * WIDTH;
      let mean = 0;
      let along = 0;
      for (let k = 0; k < WIDTH; k++) {
        const each = heap[dh + row + k];
        const own = heap[hat + row + k];
        const g = each * heap[W + gamma + k];
        heap[G + gamma + k] += each * own;
        heap[G + beta + k] += each;
        mean += g / WIDTH;
        along += (g * own) / WIDTH;
      }
      const factor = heap[by + i];
      for (let k = 0; k < WIDTH; k++) {
        const g = heap[dh + row + k] * heap[W + gamma + k];
        heap[dx + row + k] =
          (adds ? heap[dx + row + k] : 0) + factor * (g - mean - heap[hat + row + k] * along);
      }
    }
  }

  /** Through y = x W + b: adds to the gradients of W and b, and writes the one of x. */
  function linearBack(dy, outs, x, ins, w, b, to) {
    product(G + w, outs, G + w, outs, x, 1, ins, dy, outs, ins, outs, LENGTH);
    for (let i = 0; i < LENGTH; i++)
      for (let k = 0; k < outs; k++) heap[G + b + k] += heap[dy + i * outs + k];
    product(to, ins, zeros, 0, dy, outs, 1, TURNED + w, ins, LENGTH, ins, outs);
  }

  /** From the gradient of the logits, which lies in their place, to those of all weights. */
  function backward(tokens, from) {
    linearBack(end.logits, LETTERS, end.h, WIDTH, at.w_out, at.b_out, dh);
    normBack(end.hat, end.by, at.gamma, at.beta, false);
    for (let l = layers - 1; l >= 0; l--) {
      const [own, w] = [kept[l], places[l]];
      linearBack(dx, WIDTH, own.f, HIDDEN, w.w_2, w.b_2, df);
      for (let k = 0; k < LENGTH * HIDDEN; k++) if (!(heap[own.f + k] > 0)) heap[df + k] = 0;
      linearBack(df, HIDDEN, own.h_2, WIDTH, w.w_1, w.b_1, dh);
      normBack(own.hat_2, own.by_2, w.gamma_2, w.beta_2, residual);
      linearBack(dx, WIDTH, own.o, WIDTH, w.w_o, w.b_o, dh);
      for (let h = 0; h < heads; h++) attentionBack(own, h);
      linearBack(dqkv, QKV, own.h_1, WIDTH, w.w_qkv, w.b_qkv, dh);
      normBack(own.hat_1, own.by_1, w.gamma_1, w.beta_1, residual);
    }
    for (let i = 0; i < LENGTH; i++) {
      const row = G + at.embedding + tokens[from + i] * WIDTH;
      for (let k = 0; k < WIDTH; k++) heap[row + k] += heap[dx + i * WIDTH + k];
    }
  }

  /** Through one head, from the gradient of its output in dh to those of Q, K and V in dqkv. */
  function attentionBack(own, h) {
    const part = h * size;
    const a = own.a + h * LENGTH * LENGTH;
    const [dz, q, dq] = [dh + part, own.qkv + part, dqkv + part];
    const valuesTurned = own.turned + (WIDTH + part) * LENGTH;
    product(da, LENGTH, zeros, 0, dz, WIDTH, 1, valuesTurned, LENGTH, LENGTH, LENGTH, size);
    product(dq + 2 * WIDTH, QKV, zeros, 0, a, 1, LENGTH, dz, WIDTH, LENGTH, size, LENGTH);
    for (let i = 0; i < LENGTH; i++) {
      const row = i * LENGTH;
      let sum = 0;
      for (let j = 0; j < LENGTH; j++) sum += heap[a + row + j] * heap[da + row + j];
      for (let j = 0; j < LENGTH; j++)
        heap[da + row + j] = scale * heap[a + row + j] * (heap[da + row + j] - sum);
    }
    product(dq, QKV, zeros, 0, da, LENGTH, 1, q + WIDTH, QKV, LENGTH, size, LENGTH);
    product(dq + WIDTH, QKV, zeros, 0, da, 1, LENGTH, q, QKV, LENGTH, size, LENGTH);
  }

  // ------------------------------------------------------------- sentences, loss and a step

  /** Where each answer stands in a sentence of that length: its position, or -1 without one. */
  function answersIn(tokens, from, length, period) {
    return Array.from({ length }, (_, i) => {
      let j = i - 1;
      if (task === "next") j = i - period;
      else while (j >= 0 && tokens[from + j] !== tokens[from + i]) j--;
      return j < 0 ? -1 : j + 1;
    });
  }

  /** New sentences, and where their answers stand, from a generator. */
  function draw(random, sentences) {
    const tokens = new Int32Array(sentences * LENGTH);
    const answers = new Int32Array(sentences * LENGTH);
    for (let from = 0; from < tokens.length; from += LENGTH) {
      const repeats = task === "next";
      const period = repeats ? LENGTH / 4 + Math.floor(random() * (LENGTH / 4 + 1)) : LENGTH;
      for (let i = 0; i < LENGTH; i++)
        tokens[from + i] = i < period ? Math.floor(random() * LETTERS) : tokens[from + i - period];
      answers.set(answersIn(tokens, from, LENGTH, period), from);
    }
    return { tokens, answers };
  }

  /** The letter with the largest logit at a position. */
  function says(i) {
    const row = end.logits + i * LETTERS;
    let best = 0;
    for (let k = 1; k < LETTERS; k++) if (heap[row + k] > heap[row + best]) best = k;
    return best;
  }

  /** Logits of the position i become probabilities; returns the log of what divides them. */
  function probabilities(i) {
    const row = end.logits + i * LETTERS;
    const most = heap[row + says(i)];
    let sum = 0;
    for (let k = 0; k < LETTERS; k++) {
      heap[row + k] = Math.exp(heap[row + k] - most);
      sum += heap[row + k];
    }
    for (let k = 0; k < LETTERS; k++) heap[row + k] /= sum;
    return Math.log(sum) + most;
  }

  /**
   * Adds the loss of the sentence that was just read to `found`; its logits become their gradient.
   */
  function lossOf({ tokens, answers }, from, asked, found) {
    for (let i = 0; i < LENGTH; i++) {
      const row = end.logits + i * LETTERS;
      const answer = answers[from + i];
      if (answer < 0) {
        heap.fill(0, row, row + LETTERS);
        continue;
      }
      const right = tokens[from + answer];
      const logit = heap[row + right];
      if (says(i) === right) found.accuracy += 1 / asked;
      found.loss += (probabilities(i) - logit) / asked;
      for (let k = 0; k < LETTERS; k++) heap[row + k] /= asked;
      heap[row + right] -= 1 / asked;
    }
    const pairs = ((LENGTH - 1) * answers.length) / LENGTH;
    for (let l = 0; l < layers; l++)
      for (let h = 0; h < heads; h++) {
        const a = kept[l].a + h * LENGTH * LENGTH;
        const head = l * heads + h;
        for (let i = 0; i < LENGTH; i++) {
          const row = a + i * LENGTH;
          const answer = answers[from + i];
          if (answer >= 0) found.onAnswer[head] += heap[row + answer] / asked;
          if (i > 0) found.oneBack[head] += heap[row + i - 1] / pairs;
          if (i + 1 < LENGTH) found.oneAhead[head] += heap[row + i + 1] / pairs;
        }
      }
  }

  /**
   * The gradients of the loss on these sentences; returns the loss, the accuracy, and for each head
   * the mean weight on the token before, on the answer, and on the token behind.
   */
  function gradients(sentences) {
    const { tokens, answers } = sentences;
    const asked = answers.reduce((sum, answer) => sum + (answer >= 0), 0);
    const none = () => new Array(layers * heads).fill(0);
    const found = { loss: 0, accuracy: 0, oneBack: none(), onAnswer: none(), oneAhead: none() };
    gradient.fill(0);
    for (let from = 0; from < tokens.length; from += LENGTH) {
      forward(tokens, from, LENGTH, []);
      lossOf(sentences, from, asked, found);
      backward(tokens, from);
    }
    return found;
  }

  /** The learning rate rises over a tenth of the steps and falls to nearly 0: "one cycle". */
  function rateAt(step) {
    const top = WARM_UP * steps - 1;
    const between = (from, to, part) => to + ((from - to) * (1 + Math.cos(Math.PI * part))) / 2;
    if (step < top) return between(rate / 25, rate, step / top);
    return between(rate, rate / 250000, Math.min(1, (step - top) / (steps - 1 - top)));
  }

  let done = 0;
  function update() {
    const norm = Math.sqrt(gradient.reduce((sum, each) => sum + each * each, 0));
    const cut = CLIP / Math.max(norm, CLIP);
    const now = rateAt(done++);
    const fair = 1 / (1 - BETA_2 ** done);
    const by = now / (1 - BETA_1 ** done);
    for (let k = 0; k < count; k++) {
      const g = gradient[k] * cut;
      const mean = BETA_1 * heap[MEAN + k] + (1 - BETA_1) * g;
      const square = BETA_2 * heap[SQUARE + k] + (1 - BETA_2) * g * g;
      heap[MEAN + k] = mean;
      heap[SQUARE + k] = square;
      weights[k] = (1 - now * DECAY) * weights[k] - (by * mean) / (Math.sqrt(square * fair) + 1e-8);
    }
    turnAll();
  }

  const matrix = (place, rows, columns, width) =>
    Array.from({ length: rows }, (_, i) =>
      Array.from(heap.subarray(place + i * width, place + i * width + columns)),
    );

  return {
    shapes,
    at,
    count,
    weights,
    gradient,
    gradients,
    draw: (seed, sentences) => draw(generator(seed), sentences),

    /** The sentences of the next step. */
    next: () => draw(random, batch),

    /** One step of training; returns what `gradients` found on its new sentences. */
    step() {
      const found = gradients(this.next());
      update();
      return { step: done, ...found };
    },

    /**
     * What the model makes of a sentence of 1 to 24 tokens: by layer and head where it attends, and
     * the probability of each letter at each position.
     */
    read(tokens, off = []) {
      const { length } = tokens;
      forward([...tokens, ...new Array(LENGTH - length).fill(0)], 0, length, off);
      for (let i = 0; i < length; i++) probabilities(i);
      const map = (l, h) => matrix(kept[l].a + h * LENGTH * LENGTH, length, length, LENGTH);
      return {
        weights: kept.map((_, l) => Array.from({ length: heads }, (_, h) => map(l, h))),
        probabilities: matrix(end.logits, length, LETTERS, LETTERS),
      };
    },

    /** How many answers of a drawn sentence are right, and how many there are. */
    mark({ tokens, answers }, from, off = []) {
      forward(tokens, from, LENGTH, off);
      const asked = Array.from({ length: LENGTH }, (_, i) => i).filter(
        (i) => answers[from + i] >= 0,
      );
      const right = asked.filter((i) => says(i) === tokens[from + answers[from + i]]);
      return [right.length, asked.length];
    },
  };
}

/**
 * What runs in the worker. The page asks for steps: up to `most` of them, for up to `ms`
 * milliseconds; it gets what each of them found, and the weights after the last.
 */
export function serve(makeLearner, kernel) {
  let learner = null;
  let module = null;
  try {
    const bytes = Uint8Array.from(atob(kernel), (sign) => sign.charCodeAt(0));
    module = kernel ? new WebAssembly.Module(bytes) : null;
  } catch {
    /* no WebAssembly, none with SIMD, or a policy against it: plain JavaScript */
  }
  self.onmessage = ({ data: { settings, most, ms } }) => {
    if (settings) learner = makeLearner(settings, module);
    const begin = performance.now();
    const found = [];
    do found.push(learner.step());
    while (found.length < most && performance.now() - begin < ms);
    const weights = learner.weights.slice();
    postMessage({ found, weights, fast: module !== null }, [weights.buffer]);
  };
}
