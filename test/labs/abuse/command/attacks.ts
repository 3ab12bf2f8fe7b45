import { answerAttacks } from "./answer-attacks.ts";
import type { Attack } from "./attack.ts";
import { connectionAttacks } from "./connection-attacks.ts";
import { loginAttacks } from "./login-attacks.ts";
import { meteringAttacks } from "./metering-attacks.ts";
import { stormAttacks } from "./storm-attacks.ts";
import { streamAttacks } from "./stream-attacks.ts";

export const attacks: readonly Attack[] = [
  ...loginAttacks,
  ...streamAttacks,
  ...connectionAttacks,
  ...answerAttacks,
  ...stormAttacks,
  ...meteringAttacks,
];
