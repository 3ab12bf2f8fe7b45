import { createHash, timingSafeEqual } from "node:crypto";

/** Whether a secret was given, in a time that tells nothing of where the two differ, or of how long they are. */
export const isSameSecret = (given: string, secret: string): boolean => timingSafeEqual(sha256(given), sha256(secret));

const sha256 = (text: string) => createHash("sha256").update(text).digest();
