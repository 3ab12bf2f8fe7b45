import type { EndSignal, Io } from "./io.ts";

/** The reason with which a command's requests, pauses and questions end when the user, or the system, asks it to stop. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  // Not a parameter property: another runtime, which only strips types, has to get as far as saying that it is the wrong one.
  readonly by: EndSignal;

  constructor(by: EndSignal) {
    super(`interrupted by ${by}`);
    this.by = by;
  }
}

/** Aborts with `Interrupted` at the next signal. From here on a signal no longer ends the program by itself. */
export function abortOnSignal(io: Pick<Io, "nextSignal">): AbortController {
  const controller = new AbortController();
  void io.nextSignal().then((signal) => controller.abort(new Interrupted(signal)));
  return controller;
}
