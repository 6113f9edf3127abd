/** Asks modules of the page on behalf of pytest: JSON in, JSON out. */
import { readFileSync } from "node:fs";
import { COMMANDS } from "../../../../dispatcher/web/static/page/commands.js";
import { Table } from "../../../../dispatcher/web/static/page/table.js";
import { History, tableAt } from "../../../../dispatcher/web/static/page/past.js";
import { condition } from "../../../../dispatcher/web/static/page/where.js";
import { differences } from "../../../../dispatcher/web/static/page/words.js";

const ask = JSON.parse(readFileSync(0, "utf8"));
const answers = {
  where: ({ table, texts }) => {
    const one = new Table(table);
    return texts.map((text) => {
      try {
        const { test, local } = condition(text, one);
        const found = [];
        for (let row = 0; row < one.count; row += 1) if (test(row)) found.push(one.number("trial", row));
        return { local, found };
      } catch (error) {
        return { column: error.column };
      }
    });
  },
  past: ({ table, history, times }) => {
    const [whole, lives] = [new Table(table), new History(history)];
    return times.map((time) => {
      const then = tableAt(whole, lives, time);
      return Array.from({ length: then.count }, (_, row) => ["trial", "state", "outcome", "value", "attempts"].map((name) => then.get(name, row)));
    });
  },
  commands: ({ calls }) => calls.map(([name, ...given]) => COMMANDS[name](...given)),
  words: ({ pairs }) => pairs.map(([before, after]) => differences(before, after).map((one) => one.name)),
};
process.stdout.write(JSON.stringify(answers[ask.what](ask)));
