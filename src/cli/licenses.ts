import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import type { Command } from "./command.ts";
import { exitCode } from "./io.ts";

/** The build embeds `dist/about` under its last name; in the source tree it is where `bun run build` leaves it. */
const places = [join(import.meta.dir, "about"), join(import.meta.dir, "../../dist/about")];

export const licensesCommand: Command = {
  words: ["licenses"],
  operands: [],
  flags: [],
  summary: "Print the licences of the program and everything bundled with it",
  async run(_args, io) {
    const path = places.map((folder) => join(folder, "licences.txt")).find(existsSync);
    if (path === undefined) throw new StartupError("The licences are collected by the build. Try: bun run build");
    io.out(readFileSync(path, "utf8"));
    return exitCode.ok;
  },
};
