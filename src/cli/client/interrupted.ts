import type { EndSignal, Io } from "../io.ts";

/** The reason with which a command's own requests and pauses end when the user, or the system, asks it to stop. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";

  constructor(readonly by: EndSignal) {
    super(`interrupted by ${by}`);
  }
}

/** Aborts with `Interrupted` at the next signal. From here on a signal no longer ends the program by itself. */
export function abortOnSignal(io: Pick<Io, "nextSignal">): AbortController {
  const controller = new AbortController();
  void io.nextSignal().then((signal) => controller.abort(new Interrupted(signal)));
  return controller;
}
