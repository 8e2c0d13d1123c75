/** A table whose buttons are reached by the arrow keys. */

/** Moves the focus from a button of a table one step in a direction, or to an end of its row. */
export function stepInGrid(event, table, pick) {
  const rows = Array.from(table.rows, (row) => Array.from(row.querySelectorAll("button"))).filter(
    (row) => row.length,
  );
  const i = rows.findIndex((row) => row.includes(event.target));
  if (i < 0 || event.altKey || event.metaKey) return;
  const j = rows[i].indexOf(event.target);
  const to = {
    ArrowUp: [i - 1, j],
    ArrowDown: [i + 1, j],
    ArrowLeft: [i, j - 1],
    ArrowRight: [i, j + 1],
    Home: [event.ctrlKey ? 0 : i, 0],
    End: [event.ctrlKey ? rows.length - 1 : i, rows[i].length - 1],
  }[event.key];
  const button = to && rows[to[0]]?.[to[1]];
  if (!to) return;
  event.preventDefault();
  if (!button) return;
  pick(...to);
  button.focus();
}
