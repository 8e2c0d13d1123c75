/**
 * The world of stories, read word by word: the exact probability of each next word, the kind of
 * dependency that a word shows, and the earlier words that decide it. The same as attnlib/world.py,
 * which explains it; the world itself is the text of attnlib/data/world.txt.
 */

export const END = "¶"; // stands before and after each story

const SLOT = /^\{(\w?)(?::(\w+)(?:([@!])(\w))?|=(\w+)|\.(\w+))?\}$/;

const parts = (text) => text.split(/\s+/).filter(Boolean);

/** A word, a place to fill, or a place where another rule goes on. */
function item(part) {
  const slot = SLOT.exec(part);
  if (slot) {
    const [, letter, table, relation, other, among, form] = slot;
    return { type: "slot", letter, table, relation, other, among, form };
  }
  return part[0] === "<" ? { type: "rule", name: part.slice(1, -1) } : part;
}

/** The world that a text describes: tables, forms, rules, and the kinds of dependency. */
export function parseWorld(text) {
  const world = {
    table: new Map(),
    form: new Map(),
    rule: new Map(),
    dependencies: new Map(),
  };
  let section;
  let name;
  const read = {
    table(row) {
      const colon = row.lastIndexOf(":");
      const kind = row.slice(0, Math.max(colon, 0)).trim();
      const dependency = world.dependencies.get(name);
      for (const words of row.slice(colon + 1).split(",")) {
        const thing = { words: parts(words), kind, table: name, dependency, told: [] };
        world.table.get(name).push(thing);
      }
    },
    form(row) {
      for (const pair of row.split(",")) {
        const [word, form] = pair.split("->");
        world.form.get(name).set(word.trim(), form.trim());
      }
    },
    rule(line) {
      let all = parts(line);
      const weight = /^\d+$/.test(all[0]) ? Number(all.shift()) : 1;
      const needs = all.filter((part) => part[0] === "?" && part.length === 2);
      all = all.slice(needs.length).map(item);
      world.rule.get(name).push({ weight, needs: needs.map((part) => part[1]), items: all });
    },
  };
  for (const whole of text.split("\n")) {
    const [line] = whole.split("#");
    if (!line.trim()) continue;
    let rows;
    if (/^(?:table|form|rule)/.test(line)) {
      const [head, ...rest] = line.split("|");
      const [kind, called, ...dependency] = parts(head);
      [section, name, rows] = [kind, called, rest];
      world.dependencies.set(name, dependency.join(""));
      world[section].set(name, section === "form" ? new Map() : []);
    } else {
      rows = section === "rule" ? [line] : line.split("|");
    }
    rows.forEach(read[section]);
  }
  return world;
}

const said = (text, kind = "", deciders = [], letters = []) => ({
  type: "word",
  text,
  kind,
  deciders,
  letters,
});

const positions = ({ told }, word = null) =>
  told.filter(([text]) => word === null || text === word).map(([, position]) => position);

/** The things that can fill a slot, the kind of dependency, and the positions that decide it. */
function candidates(world, slot, known) {
  const table = slot.table ?? `=${slot.among}`;
  let [things, dependency, deciders] = [world.table.get(table), "", []];
  if (slot.among) {
    const group = Array.from(slot.among, (letter) => known[letter]);
    things = group.map((thing) => ({ ...thing, table, told: [] }));
    dependency = things[0].dependency;
    deciders = group.flatMap((thing) => positions(thing));
  }
  if (slot.relation) {
    const other = known[slot.other];
    const alike = slot.relation === "@";
    things = things.filter((thing) => (thing.kind === other.kind) === alike);
    [dependency, deciders] = [world.dependencies.get(table), positions(other)];
  }
  const taken = Object.values(known).filter((thing) => thing.table === table);
  if (taken.length && slot.letter) {
    const used = new Set(taken.map(({ words }) => words.join(" ")));
    things = things.filter(({ words }) => !used.has(words.join(" ")));
    dependency ||= "different";
    deciders = [...deciders, ...taken.flatMap((thing) => positions(thing))];
  }
  return { things, dependency, deciders: [...new Set(deciders)] };
}

/** The ways in which a slot at the head of a way can be filled. */
function fill(world, slot, { probability, known }, rest) {
  const { letter } = slot;
  if (slot.form) {
    const [thing, form] = [known[letter], world.form.get(slot.form)];
    const text = form.get(thing.words.at(-1)) ?? form.get(thing.kind);
    const word = said(text, world.dependencies.get(slot.form), positions(thing), [letter]);
    return [{ probability, items: [word, ...rest], known }];
  }
  if (letter && known[letter]) {
    const thing = known[letter];
    const words = thing.words.map((text) =>
      said(text, thing.dependency, positions(thing, text), [letter]),
    );
    return [{ probability, items: [...words, ...rest], known }];
  }
  const { things, dependency, deciders } = candidates(world, slot, known);
  const letters = [letter, slot.relation === "@" && slot.other].filter(Boolean);
  return things.map((thing) => {
    const words = thing.words.map((text, i) =>
      i ? said(text, "", [], letters) : said(text, dependency, deciders, letters),
    );
    const now = letter ? { ...known, [letter]: thing } : known;
    return { probability: probability / things.length, items: [...words, ...rest], known: now };
  });
}

/** The ways in which the first item of a way can be carried out. */
function carryOut(world, way) {
  const { probability, items, known } = way;
  if (!items.length) return [{ probability, items: [said(END)], known }];
  const [first, ...rest] = items;
  if (first === "“") {
    const quote = { words: [first], kind: "", table: "", dependency: "", told: [] };
    const word = said(first, "", [], [first]);
    return [{ probability, items: [word, ...rest], known: { ...known, [first]: quote } }];
  }
  if (typeof first === "string") {
    const word = first === "”" ? said(first, "quote", positions(known["“"])) : said(first);
    return [{ probability, items: [word, ...rest], known }];
  }
  if (first.type === "slot") return fill(world, first, way, rest);
  const lines = world.rule.get(first.name).filter(({ needs }) => needs.every((x) => x in known));
  const total = lines.reduce((sum, { weight }) => sum + weight, 0);
  return lines.map((line) => ({
    probability: (probability * line.weight) / total,
    items: [...line.items, ...rest],
    known,
  }));
}

/** All ways to go on from a way that begin with a word. */
const grow = (world, way) =>
  way.items[0]?.type === "word"
    ? [way]
    : carryOut(world, way).flatMap((choice) => grow(world, choice));

/** A way after its first item, a word, has been said at a position. */
function say({ probability, items: [word, ...items], known }, position) {
  if (!word.letters.length) return { probability, items, known };
  const now = { ...known };
  for (const letter of word.letters) {
    now[letter] = { ...now[letter], told: [...now[letter].told, [word.text, position]] };
  }
  return { probability, items, known: now };
}

/** A place in a story: the ways to get on, and the probability of each word that can come next. */
function place(world, position, ways) {
  const grown = ways.flatMap((way) => grow(world, way));
  const probabilities = new Map();
  for (const { probability, items } of grown) {
    const [{ text }] = items;
    probabilities.set(text, (probabilities.get(text) ?? 0) + probability);
  }
  return { world, position, ways: grown, probabilities };
}

/** Where every story begins. */
export const storyBegins = (world) =>
  place(world, 0, [{ probability: 1, items: [{ type: "rule", name: "story" }], known: {} }]);

/**
 * The next word of a story: { step, next }, what is known of the word, { probabilities, kind,
 * deciders, ways }, and the place after it; null if the word cannot stand there.
 */
export function readWord({ world, position, ways, probabilities }, word) {
  if (!probabilities.has(word)) return null;
  const fit = ways.filter(({ items }) => items[0].text === word);
  const best = fit.reduce((most, way) => (way.probability > most.probability ? way : most));
  const { kind, deciders } = best.items[0];
  const after = fit.map((way) =>
    say({ ...way, probability: way.probability / probabilities.get(word) }, position + 1),
  );
  return {
    step: { probabilities, kind, deciders, ways: fit.length },
    next:
      word === END
        ? { world, position: position + 1, ways: [], probabilities: new Map() }
        : place(world, position + 1, after),
  };
}
