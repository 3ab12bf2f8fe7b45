import { attacks } from "./attacks.ts";
import type { AttackTarget, Tally } from "./target.ts";

/**
 * The process of one attack: `bun attacker.ts <name>`, with the target as a line on standard input. It attacks until that
 * ends, or until it has an end of its own, and prints what it was answered.
 */
const attack = attacks.find(({ name }) => name === process.argv[2]);
if (attack === undefined) throw new Error(`There is no attack "${process.argv[2]}".`);

let isOver = false;
let input = "";
const { promise: target, resolve } = Promise.withResolvers<AttackTarget>();
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text: string) => {
  input += text;
  if (input.includes("\n")) resolve(JSON.parse(input) as AttackTarget);
});
process.stdin.on("end", () => {
  isOver = true;
});

const tally: Tally = {};
await attack.run(await target, tally, () => isOver);
process.stdout.write(`${JSON.stringify(tally)}\n`, () => process.exit(0));
