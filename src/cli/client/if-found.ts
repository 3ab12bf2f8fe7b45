import { Interrupted } from "../interrupted.ts";

/** Null if the look-up fails: a hint must not keep anyone from the result that it goes with. @throws Interrupted */
export async function ifFound<Hint>(lookUp: Promise<Hint>): Promise<Hint | null> {
  try {
    return await lookUp;
  } catch (error) {
    if (error instanceof Interrupted) throw error;
    return null;
  }
}
