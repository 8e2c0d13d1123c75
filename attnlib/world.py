"""A small world of stories in which the probability of every next word is known.

`data/world.txt` holds the tables and the rules, and says how they are read. `World.tell` draws a
story. `Reading` takes a story word by word and gives the exact probability of each next word: it
keeps every way in which the words so far can have come about, with its probability. The lowest
loss that any model can reach on these stories is the entropy of those probabilities.
"""

import math
import re
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

END = "¶"  # stands before and after each story
FILE = Path(__file__).with_name("data") / "world.txt"
GLUED = {".", ",", "?", "!", ":", "”", "’s"}  # stand close behind the word before
PART = re.compile(r"Mrs?\.|’s\b|[\w-]+|[^\w\s]")  # a word or a mark in a written text
SLOT = re.compile(r"\{(\w?)(?::(\w+)(?:([@!])(\w))?|=(\w+)|\.(\w+))?\}")


class Slot(NamedTuple):
    """A place in a line that is filled when the story gets there, such as {x:sight@S}."""

    letter: str
    table: str | None
    relation: str | None  # "@": of the same kind as `other`; "!": of another kind
    other: str | None
    among: str | None  # the letters to choose from, as in {W=ABN}
    form: str | None


class Rule(NamedTuple):
    """A place in a line where another rule goes on."""

    name: str


class Thing(NamedTuple):
    """A thing of a table, and what a story remembers of it."""

    words: tuple
    kind: str  # the kind of its row, such as she, or river
    table: str = ""
    dependency: str = ""  # the kind of dependency that a repetition shows
    told: tuple = ()  # (word, position) of each word so far that says it or is decided by it

    def positions(self, word=None):
        """Return the positions of the words that tell of it, or where `word` stood."""
        return tuple(position for said, position in self.told if word in (None, said))


class Word(NamedTuple):
    """A word that comes next in a way, and what depends on it."""

    text: str
    kind: str = ""  # of its dependency; "" where no earlier thing decides it
    deciders: tuple = ()  # positions of the earlier words that decide it
    letters: tuple = ()  # the remembered things of which it tells


class Way(NamedTuple):
    """One way in which the words so far can have come about, and how it goes on."""

    probability: float
    items: tuple  # words, slots and rules that are still to come
    known: dict  # the remembered things by their letters


class Step(NamedTuple):
    """One word of a story, and what could have stood in its place."""

    word: str
    probabilities: dict
    kind: str
    deciders: tuple
    ways: int  # that are left open after this word


class World:
    """Tables, forms and rules, read from a text such as `data/world.txt`."""

    def __init__(self, text=None):
        self.tables, self.forms, self.rules = {}, {}, {}
        self.dependencies = {}  # their kinds, by the name of a table or a form
        text = FILE.read_text(encoding="utf-8") if text is None else text
        for line in text.splitlines():
            line = line.partition("#")[0]
            if not line.strip():
                continue
            if line.startswith(("table", "form", "rule")):
                head, *rows = line.split("|")
                section, name, *dependency = head.split()
                self.dependencies[name] = "".join(dependency)
                getattr(self, section + "s")[name] = {} if section == "form" else []
            else:
                rows = line.split("|") if section != "rule" else [line]
            for row in rows:
                getattr(self, f"_read_{section}")(name, row)

    def _read_table(self, name, row):
        kind, _, things = row.rpartition(":")
        for words in things.split(","):
            thing = Thing(tuple(words.split()), kind.strip(), name, self.dependencies[name])
            self.tables[name].append(thing)

    def _read_form(self, name, row):
        pairs = (pair.split("->") for pair in row.split(","))
        self.forms[name] |= {word.strip(): form.strip() for word, form in pairs}

    def _read_rule(self, name, line):
        parts = line.split()
        weight = int(parts.pop(0)) if parts[0].isdigit() else 1
        needs = [part[1] for part in parts if part[0] == "?" and len(part) == 2]
        self.rules[name].append((weight, needs, tuple(map(self._item, parts[len(needs) :]))))

    @staticmethod
    def _item(part):
        slot = SLOT.fullmatch(part)
        if slot:
            return Slot(*slot.groups())
        return Rule(part[1:-1]) if part[0] == "<" else part

    @cached_property
    def words(self):
        """All words that a story can hold, sorted, with END in front."""
        things = [thing for table in self.tables.values() for thing in table]
        words = {word for thing in things for word in thing.words}
        words |= {word for form in self.forms.values() for word in form.values()}
        lines = [line for rule in self.rules.values() for *_, line in rule]
        words |= {item for line in lines for item in line if isinstance(item, str)}
        return [END, *sorted(words)]

    def begin(self):
        """Return the one way in which every story begins."""
        return Way(1.0, (Rule("story"),), {})

    def choices(self, way):
        """Return the ways in which the first item of a way can be carried out."""
        probability, items, known = way
        if not items:
            return [Way(probability, (Word(END),), known)]
        item, rest = items[0], items[1:]
        if item == "“":  # is remembered, because it decides the closing one
            word, known = Word(item, letters=(item,)), {**known, item: Thing((item,), "")}
            return [Way(probability, (word, *rest), known)]
        if isinstance(item, str):
            word = Word(item, "quote", known["“"].positions()) if item == "”" else Word(item)
            return [Way(probability, (word, *rest), known)]
        if isinstance(item, Rule):
            lines = [
                (weight, line)
                for weight, needs, line in self.rules[item.name]
                if all(need in known for need in needs)
            ]
            total = sum(weight for weight, _ in lines)
            return [Way(probability * weight / total, line + rest, known) for weight, line in lines]
        return self._fill(item, probability, rest, known)

    def _fill(self, slot, probability, rest, known):
        if slot.form:
            thing, form = known[slot.letter], self.forms[slot.form]
            text = form.get(thing.words[-1]) or form[thing.kind]
            word = Word(text, self.dependencies[slot.form], thing.positions(), (slot.letter,))
            return [Way(probability, (word, *rest), known)]
        if slot.letter in known:
            thing = known[slot.letter]
            words = (
                Word(text, thing.dependency, thing.positions(text), (slot.letter,))
                for text in thing.words
            )
            return [Way(probability, (*words, *rest), known)]
        things, dependency, deciders = self._candidates(slot, known)
        letters = (slot.letter,) if slot.letter else ()
        letters += (slot.other,) if slot.relation == "@" else ()
        ways = []
        for thing in things:
            first = Word(thing.words[0], dependency, deciders, letters)
            words = (first, *(Word(text, letters=letters) for text in thing.words[1:]))
            now = {**known, slot.letter: thing} if slot.letter else known
            ways.append(Way(probability / len(things), words + rest, now))
        return ways

    def _candidates(self, slot, known):
        """Return the things that can fill a slot, the dependency, and its deciders."""
        table, dependency, deciders = slot.table or f"={slot.among}", "", ()
        if slot.among:
            group = [known[letter] for letter in slot.among]
            things = [thing._replace(table=table, told=()) for thing in group]
            dependency = things[0].dependency
            deciders = sum((thing.positions() for thing in group), ())
        else:
            things = self.tables[table]
        if slot.relation:
            other = known[slot.other]
            things = [
                thing for thing in things if (thing.kind == other.kind) == (slot.relation == "@")
            ]
            dependency, deciders = self.dependencies[table], other.positions()
        taken = [thing for thing in known.values() if thing.table == table]
        if taken and slot.letter:
            used = {thing.words for thing in taken}
            things = [thing for thing in things if thing.words not in used]
            dependency = dependency or "different"
            deciders += sum((thing.positions() for thing in taken), ())
        return things, dependency, tuple(dict.fromkeys(deciders))

    def grow(self, way):
        """Return all ways to go on from `way` that begin with a word."""
        if way.items and isinstance(way.items[0], Word):
            return [way]
        return [grown for choice in self.choices(way) for grown in self.grow(choice)]

    @staticmethod
    def say(way, position):
        """Return a way after its first item, a word, has been said at a position."""
        word, known = way.items[0], way.known
        if word.letters:
            known = dict(known)
            for letter in word.letters:
                thing = known[letter]
                known[letter] = thing._replace(told=(*thing.told, (word.text, position)))
        return Way(way.probability, way.items[1:], known)

    def tell(self, rng):
        """Draw a story with `rng`, a `random.Random`: return its words, END last, and -ln p.

        p is the probability of all the choices that were made.
        """
        way, words = self.begin(), []
        while not words or words[-1] != END:
            while not (way.items and isinstance(way.items[0], Word)):
                ways = self.choices(way)
                way = ways[0] if len(ways) == 1 else rng.choices(ways, [w[0] for w in ways])[0]
            words.append(way.items[0].text)
            way = self.say(way, len(words))
        return words, -math.log(way.probability)

    def read(self, words):
        """Return a `Step` for each of the words of a story."""
        reading = Reading(self)
        return [reading.read(word) for word in words]


class Reading:
    """A story that is read word by word.

    Attributes
    ----------
    probabilities : dict
        The exact probability of each word that can come next; empty after the story's END.
    """

    def __init__(self, world):
        self.world, self.position = world, 0
        self._look_ahead([world.begin()])

    def _look_ahead(self, ways):
        self._ways = [grown for way in ways for grown in self.world.grow(way)]
        self.probabilities = {}
        for way in self._ways:
            text = way.items[0].text
            self.probabilities[text] = self.probabilities.get(text, 0.0) + way.probability

    def read(self, word):
        """Take the next word and return its `Step`; a ValueError says what could stand there."""
        if word not in self.probabilities:
            likely = sorted(self.probabilities, key=self.probabilities.get, reverse=True)[:5]
            raise ValueError(f"word {self.position + 1} cannot be {word!r}; possible: {likely}")
        before, self.position = self.probabilities, self.position + 1
        ways = [way for way in self._ways if way.items[0].text == word]
        said = max(ways, key=lambda way: way.probability).items[0]
        ways = [
            self.world.say(way._replace(probability=way.probability / before[word]), self.position)
            for way in ways
        ]
        if word == END:
            self._ways, self.probabilities = [], {}
        else:
            self._look_ahead(ways)
        return Step(word, before, said.kind, said.deciders, len(ways))


def entropy(probabilities):
    """Return -sum p ln p of a dictionary of probabilities."""
    return -sum(p * math.log(p) for p in probabilities.values())


def show(words):
    """Return words as a text that people read."""
    text, start, last = "", True, ""
    for word in words:
        start = start or last == END or (word == "“" and last != ",")
        if word != END:
            glue = "" if not text or last == "“" or word in GLUED else " "
            text += glue + (word[0].upper() + word[1:] if start or word == "i" else word)
            start = word in ".?!" or (word == "“" and start) or (word == "”" and last == ".")
        last = word
    return text


def split(text, words):
    """Return the words of a text that people wrote: what `show` made of them, for a story.

    A word with a capital loses it where `words`, the known ones, do not have it as it is written.
    """
    known, found = set(words), []
    for part in PART.findall(text.replace("'", "’")):
        if part == '"':
            part = "”" if found.count("“") > found.count("”") else "“"
        lower = part[0].lower() + part[1:]
        found.append(part if part in known or lower not in known else lower)
    return found
