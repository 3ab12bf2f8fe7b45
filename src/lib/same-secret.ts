import { createHash, timingSafeEqual } from "node:crypto";

/** Whether the secret was given, in a time that reveals neither where the two differ nor how long they are. */
export const isSameSecret = (given: string, secret: string): boolean => timingSafeEqual(sha256(given), sha256(secret));

const sha256 = (text: string) => createHash("sha256").update(text).digest();
